"""A template that does not compile or does not render, and where."""

from __future__ import annotations

from collections.abc import Iterable


class TemplateFailure(Exception):  # noqa: N818 it says what happened
    """What is wrong, in which file below `templates/`, on which line (0: the whole file).

    `missing` is the last part of the name that the context does not have, None for any other failure. The message
    never holds a payload's values: it is logged.
    """

    def __init__(self, what: str, file: str, line: int = 0, *, missing: str | None = None) -> None:
        super().__init__(f"{file}:{line}: {what}" if line else f"{file}: {what}")
        self.what = what
        self.file = file
        self.line = line
        self.missing = missing


class InvalidTemplates(Exception):  # noqa: N818
    """Templates of a product that do not compile; nothing renders with them."""

    def __init__(self, failures: Iterable[TemplateFailure]) -> None:
        self.failures = tuple(failures)
        super().__init__("\n".join(map(str, self.failures)))
