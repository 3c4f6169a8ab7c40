"""The Clock as arithmetic: it can be offset, sped up, set and, per tenant, held; it never runs backwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.clock import MAX_RATE, ClockReading, InvalidClockError

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_the_real_clock_shows_real_time() -> None:
    clock = ClockReading.real(NOON)
    assert clock.is_real
    assert clock.now(NOON + HOUR) == NOON + HOUR


def test_moving_the_clock_jumps_once_and_keeps_the_pace() -> None:
    clock = ClockReading.real(NOON).moved(NOON + HOUR, timedelta(days=2))
    assert clock.now(NOON + HOUR) == NOON + HOUR + timedelta(days=2)
    assert clock.now(NOON + 2 * HOUR) == NOON + 2 * HOUR + timedelta(days=2)
    assert clock.offset == timedelta(days=2)
    assert not clock.is_real


def test_a_new_pace_does_not_jump() -> None:
    clock = ClockReading.real(NOON).moved(NOON, HOUR).paced(NOON + HOUR, 60.0)
    assert clock.now(NOON + HOUR) == NOON + 2 * HOUR
    assert clock.now(NOON + HOUR + timedelta(seconds=1)) == NOON + 2 * HOUR + timedelta(minutes=1)


def test_setting_the_clock_shows_that_instant_in_utc() -> None:
    paris = timezone(timedelta(hours=1))
    clock = ClockReading.real(NOON).showing(NOON, datetime(2011, 10, 1, 9, tzinfo=paris))
    assert clock.now(NOON) == datetime(2011, 10, 1, 8, tzinfo=UTC)
    assert clock.now(NOON).tzinfo is UTC


def test_a_held_tenant_stands_still_while_the_others_go_on() -> None:
    clock = ClockReading.real(NOON)
    assert clock.now_for(NOON + HOUR, held_at=NOON) == NOON
    assert clock.now_for(NOON + HOUR, held_at=None) == NOON + HOUR


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), MAX_RATE * 2])
def test_an_impossible_pace_is_refused(rate: float) -> None:
    with pytest.raises(InvalidClockError, match="rate"):
        ClockReading(NOON, NOON, rate)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidClockError, match="aware"):
        ClockReading(NOON, datetime(2026, 1, 1))  # noqa: DTZ001 the point of the test


@given(
    rate=st.floats(0, 1000),
    steps=st.lists(st.floats(0, 10_000), min_size=2, max_size=10),
    new_rate=st.floats(0, 1000),
)
def test_the_clock_never_runs_backwards_whatever_the_pace(
    rate: float, steps: list[float], new_rate: float
) -> None:
    clock = ClockReading(NOON, NOON, rate)
    instants = [NOON + timedelta(seconds=step) for step in sorted(steps)]
    shown = [clock.now(real) for real in instants]
    assert shown == sorted(shown)
    assert clock.paced(instants[-1], new_rate).now(instants[-1]) == shown[-1]
