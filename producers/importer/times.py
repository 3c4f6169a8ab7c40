"""Reads the times of a log: ISO 8601, epoch seconds or milliseconds, or a strptime pattern."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

TimeParser = Callable[[object], datetime]
"""From a cell to an aware UTC instant; raises ValueError saying what it expected."""

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def time_parser(time_format: str, zone: tzinfo) -> TimeParser:
    """A parser for one column.

    A time without a zone is in `zone`. Of two equal wall times at the end of summer time the earlier is
    taken, always, so that equal texts give equal instants.
    """

    def iso(cell: object) -> datetime:
        return _aware(datetime.fromisoformat(_text(cell)), zone)

    def epoch(cell: object) -> datetime:
        return _aware(datetime.fromtimestamp(_number(cell), UTC), zone)

    def epoch_ms(cell: object) -> datetime:
        return _aware(datetime.fromtimestamp(_number(cell) / 1000, UTC), zone)

    def by_pattern(cell: object) -> datetime:
        return _aware(datetime.strptime(_text(cell), time_format), zone)  # noqa: DTZ007 _aware gives the zone

    known: dict[str, TimeParser] = {"iso": iso, "epoch": epoch, "epoch_ms": epoch_ms}
    return known.get(time_format, by_pattern)


def _text(cell: object) -> str:
    if not isinstance(cell, str) or not cell.strip():
        raise ValueError("expected a time as text")
    return cell.strip()


def _number(cell: object) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        raise ValueError("expected a number of seconds or milliseconds")  # noqa: TRY004 a cell, not a call
    return float(cell)


def _aware(moment: datetime, zone: tzinfo) -> datetime:
    moment = (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    if moment < EARLIEST:
        raise ValueError("a time before 1970")
    return moment
