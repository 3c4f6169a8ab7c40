"""Durations as people write them in a product: `30s`, `15m`, `4h`, `2d`.

One number, one unit. Anything else is refused: `90`, `1.5h`, `1h30m` and `P1D` mean different things to
different people, and a nudge that fires a day late is found by a customer.
"""

from __future__ import annotations

import re
from datetime import timedelta

_FORM = re.compile(r"(0|[1-9][0-9]{0,5})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

LONGEST = timedelta(days=366)
"""Longer than this is a slip of the pen; no timer of this platform waits for years."""


class InvalidDurationError(ValueError):
    """The text is no duration; the message shows the form."""


def parse_duration(text: object) -> timedelta:
    """The duration a text such as `15m` stands for; raises `InvalidDurationError` for everything else."""
    if isinstance(text, timedelta):
        return text
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidDurationError(f"{text!r} is not a duration; write 30s, 15m, 4h or 2d")
    value = timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    if value > LONGEST:
        raise InvalidDurationError(f"{text!r} is longer than {LONGEST.days} days")
    return value


def format_duration(value: timedelta) -> str:
    """The shortest text that `parse_duration` reads as this value; fractions of a second are cut."""
    seconds = int(value.total_seconds())
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"
