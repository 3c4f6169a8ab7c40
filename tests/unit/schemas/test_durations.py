"""A duration is one number and one unit, and nothing else is one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.durations import LONGEST, InvalidDurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0s", timedelta(0)),
        ("30s", timedelta(seconds=30)),
        ("15m", timedelta(minutes=15)),
        ("90m", timedelta(minutes=90)),
        ("4h", timedelta(hours=4)),
        ("2d", timedelta(days=2)),
        ("366d", LONGEST),
    ],
)
def test_a_number_and_a_unit(text: str, value: timedelta) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "1.5h",
        "1h30m",
        "P1D",
        "PT5M",
        "-5m",
        "+5m",
        " 5m",
        "5m ",
        "5 m",
        "5M",
        "05m",
        "5w",
        "5m\n",
        "٥m",
        "s",
        90,
        1.5,
        True,
        None,
        b"5m",
        ["5m"],
    ],
)
def test_everything_else_is_refused_with_the_form(text: object) -> None:
    with pytest.raises(InvalidDurationError, match="write 30s, 15m, 4h or 2d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["367d", "9000h", "999999m", "999999d"])
def test_years_are_a_slip_of_the_pen(text: str) -> None:
    with pytest.raises(InvalidDurationError, match="longer than 366 days"):
        parse_duration(text)


def test_a_duration_is_taken_as_it_is() -> None:
    assert parse_duration(timedelta(hours=3)) == timedelta(hours=3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (90, "90s"),
        (5400, "90m"),
        (7200, "2h"),
        (86_400, "1d"),
        (90_000, "25h"),
    ],
)
def test_the_shortest_text(value: int, text: str) -> None:
    assert format_duration(timedelta(seconds=value)) == text


@given(st.integers(0, 86_400), st.sampled_from([1, 60, 3600, 86_400]))
def test_what_is_written_is_read_back(number: int, unit: int) -> None:
    value = min(timedelta(seconds=number) * unit, LONGEST)
    assert parse_duration(format_duration(value)) == value
