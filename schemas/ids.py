"""Ids in time order: events are UUID version 7, whatever derives from one is version 8 (RFC 9562).

    version 7   48 bits milliseconds │ 7 │ 12 bits │ 10 │ 62 bits      made by the database, or from a seed
    version 8   48 bits of the cause │ 8 │ 12 bits │ 10 │ 62 bits      a hash of the cause and what it is for

A derived id is a function of its cause, so deciding again makes the same rows; it takes the cause's time, so
indexes append; and it has a version of its own, so nobody can take it before its cause happens. All ids are
canonical text, lower-case with hyphens: on the hot path nothing is made of `uuid.UUID`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = (1 << 48) - 1
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_SEPARATOR = "\x1f"


class InvalidIdError(ValueError):
    """The text is not an id of this platform; the message says what one looks like."""


def uuid7_from(time_ms: int, seed: bytes) -> str:
    """The UUIDv7 of an instant in milliseconds since 1970 whose other bits are a hash of `seed`.

    The same arguments give the same id, for imports and tests that must be repeatable; the 74 hashed bits
    make two seeds meet with the probability of two random ids. Raises `InvalidIdError` outside 1970 … 10889.
    """
    if not 0 <= time_ms <= _LATEST_MS:
        raise InvalidIdError(f"{time_ms} ms is outside the 48 bits that an id has for its time")
    return _assemble(f"{time_ms:012x}", "7", sha256(seed).hexdigest())


def derived_id(cause_event_id: str, *parts: str) -> str:
    """The UUIDv8 of what `parts` name, because of an event: its 48-bit time, then a hash of cause and parts.

    `parts` are joined by a separator that no id, kind or tenant contains, so ("a", "b") is not ("ab",).
    """
    text = _SEPARATOR.join((cause_event_id, *parts))
    return _assemble(cause_event_id[:8] + cause_event_id[9:13], "8", sha256(text.encode()).hexdigest())


def _assemble(time: str, version: str, digest: str) -> str:
    variant = "89ab"[int(digest[3], 16) & 0b11]
    return f"{time[:8]}-{time[8:]}-{version}{digest[:3]}-{variant}{digest[4:7]}-{digest[7:19]}"


def id_version(event_id: str) -> int | None:
    """The version of a canonical RFC 9562 id, None for any other text."""
    match = _CANONICAL.fullmatch(event_id)
    return int(match[1], 16) if match else None


def id_time(event_id: str) -> datetime:
    """The instant inside an id, to the millisecond, in UTC. Raises `InvalidIdError` for another text."""
    if id_version(event_id) not in (7, 8):
        raise InvalidIdError(f"{event_id!r} is not a lower-case UUID of version 7 or 8")
    return _EPOCH + timedelta(milliseconds=int(event_id[:8] + event_id[9:13], 16))
