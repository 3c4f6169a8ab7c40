"""Names that people misspell: which known one was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known `<product>.<name>` whose part behind the product is most like this one's, None when none is."""
    by_stem = {other.rpartition(".")[2]: other for other in sorted(known)}
    match = get_close_matches(name.rpartition(".")[2], by_stem, n=1, cutoff=0.75)
    return by_stem[match[0]] if match else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question that ends a message about an unknown name; empty when nothing is like it."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""
