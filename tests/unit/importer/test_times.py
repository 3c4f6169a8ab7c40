"""Times of a log become UTC instants."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from producers.importer.times import time_parser


@pytest.mark.parametrize(
    ("time_format", "cell", "expected"),
    [
        ("iso", "2011-10-01 19:45:13", datetime(2011, 10, 1, 19, 45, 13, tzinfo=UTC)),
        ("iso", "2011-10-01T19:45:13.5+02:00", datetime(2011, 10, 1, 17, 45, 13, 500_000, tzinfo=UTC)),
        ("iso", " 2011-10-01T19:45:13Z ", datetime(2011, 10, 1, 19, 45, 13, tzinfo=UTC)),
        ("epoch", "1317498313", datetime(2011, 10, 1, 19, 45, 13, tzinfo=UTC)),
        ("epoch_ms", 1317498313500, datetime(2011, 10, 1, 19, 45, 13, 500_000, tzinfo=UTC)),
        ("%d.%m.%Y %H:%M", "01.10.2011 19:45", datetime(2011, 10, 1, 19, 45, tzinfo=UTC)),
    ],
)
def test_each_format(time_format: str, cell: object, expected: datetime) -> None:
    assert time_parser(time_format, UTC)(cell) == expected


def test_a_time_without_a_zone_is_in_the_given_one() -> None:
    parse = time_parser("iso", ZoneInfo("Europe/Amsterdam"))
    assert parse("2011-07-01 12:00:00") == datetime(2011, 7, 1, 10, tzinfo=UTC)
    assert parse("2011-07-01 12:00:00Z") == datetime(2011, 7, 1, 12, tzinfo=UTC)
    assert parse("2011-10-30 02:30:00") == datetime(2011, 10, 30, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time_format", "cell"),
    [
        ("iso", ""),
        ("iso", None),
        ("iso", "yesterday"),
        ("iso", "1812-01-01"),
        ("epoch", True),
        ("epoch", "noon"),
        ("%d.%m.%Y", "2011-10-01"),
    ],
)
def test_what_is_no_time_is_refused(time_format: str, cell: object) -> None:
    with pytest.raises(ValueError):
        time_parser(time_format, UTC)(cell)
