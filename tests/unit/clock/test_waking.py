"""When the clock wakes: for the nearer of due time and retry, at the Clock's rate, or when told of an earlier one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from producers.clock.waking import LOCKED_PAUSE_S, LONGEST_SLEEP_S, Outlook
from schemas.clock import ClockReading

REAL = datetime(2026, 12, 1, 9, tzinfo=UTC)
LONG_AGO = datetime(2011, 10, 1, 9, tzinfo=UTC)
NOTHING = Outlook(ClockReading.real(REAL), REAL, None, None, idle=True)


def after(seconds: float, of: datetime = REAL) -> datetime:
    return of + timedelta(seconds=seconds)


def micros(moment: datetime) -> str:
    return str(int(moment.timestamp() * 1_000_000))


def at_rate(rate: float) -> Outlook:
    return replace(NOTHING, reading=ClockReading(REAL, LONG_AGO, rate))


@pytest.mark.parametrize(
    ("ahead", "seconds"),
    [
        (NOTHING, LONGEST_SLEEP_S),
        (replace(NOTHING, due_at=after(3)), 3),
        (replace(NOTHING, due_at=after(3), retry_at=after(2)), 2),
        (replace(NOTHING, due_at=after(3), retry_at=after(5)), 3),
        (replace(NOTHING, due_at=after(3600)), LONGEST_SLEEP_S),
        (replace(NOTHING, due_at=after(-1)), LOCKED_PAUSE_S),
        (replace(NOTHING, due_at=after(0)), LOCKED_PAUSE_S),
        (replace(NOTHING, retry_at=after(-1)), LOCKED_PAUSE_S),
        (replace(NOTHING, due_at=after(-1), idle=False), 0),
        (replace(at_rate(60), due_at=after(60, LONG_AGO)), 1),
        (replace(at_rate(0.5), due_at=after(10, LONG_AGO)), 20),
        (replace(at_rate(60), retry_at=after(2)), 2),
        (replace(at_rate(0), due_at=after(1, LONG_AGO)), LONGEST_SLEEP_S),
        (replace(at_rate(0), due_at=LONG_AGO), LOCKED_PAUSE_S),
    ],
)
def test_how_long_it_sleeps(ahead: Outlook, seconds: float) -> None:
    assert ahead.sleep_s() == pytest.approx(seconds)


def test_an_earlier_one_is_slept_towards_without_asking() -> None:
    told = replace(NOTHING, due_at=after(30)).told(micros(after(4)))
    assert told is not None
    assert told.sleep_s() == pytest.approx(4)


def test_one_that_is_due_already_ends_the_sleep() -> None:
    told = replace(NOTHING, due_at=after(30)).told(micros(after(-4)))
    assert told is not None
    assert told.sleep_s() == 0


def test_a_later_one_changes_nothing() -> None:
    ahead = replace(NOTHING, due_at=after(30))
    assert ahead.told(micros(after(31))) is ahead
    assert ahead.told(micros(after(30))) is ahead


@pytest.mark.parametrize("payload", ["", "soon", "9" * 40])
def test_what_may_change_everything_ends_the_sleep(payload: str) -> None:
    assert replace(NOTHING, due_at=after(30)).told(payload) is None
