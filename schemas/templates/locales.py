"""Which languages to try for a person, and in which conventions dates and amounts are then written."""

from __future__ import annotations

import re
from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError

_TAG = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?(?:-.*)?", re.IGNORECASE)


def canonical(tag: str) -> str | None:
    """`pt_br` as `pt-BR`, `zh-hant` as `zh-Hant`; variants and extensions are left out. None: no language tag."""
    found = _TAG.fullmatch(tag.replace("_", "-"))
    if found is None:
        return None
    language, script, region = found.groups()
    parts = (language.lower(), script and script.title(), region and region.upper())
    return "-".join(part for part in parts if part)


def fallbacks(requested: str, default: str) -> tuple[str, ...]:
    """What to try, best first: `pt-BR`, `pt`, then the default. A text that is no language tag: the default."""
    tried: list[str] = []
    tag = canonical(requested) or ""
    while tag:
        tried.append(tag)
        tag = tag.rpartition("-")[0]
    return tuple(dict.fromkeys((*tried, default)))


def conventions(requested: str, written_in: str) -> Locale:
    """How numbers and dates look in a text: as the person's country writes that language (`de-AT` in a German
    text), but never in another language than the text's. Raises `UnknownLocaleError` for a text in no known one.
    """
    tag = canonical(requested)
    if tag is not None and tag.startswith(f"{written_in}-"):
        try:
            return Locale.parse(tag, sep="-")
        except (UnknownLocaleError, ValueError):
            pass  # a region that nobody describes: the language's own conventions
    return Locale.parse(written_in, sep="-")


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """The IANA zone of this name; UTC for one that does not exist, for a message must not wait for a mended zone."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; a path; a folder such as "Europe"
        return UTC
