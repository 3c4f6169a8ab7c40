"""When the next attempt is due: growing, bounded in number and age, never before the provider asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.providers.backoff import RetryPolicy, next_attempt, retry_after

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = RetryPolicy()
chances = st.floats(min_value=0, max_value=1, exclude_max=True)


def _pause(attempts: int, *, asked: timedelta | None = None, chance: float = 0.0) -> timedelta | None:
    due = next_attempt(
        POLICY, attempts=attempts, first_attempt_at=NOW, now=NOW, retry_after=asked, chance=chance
    )
    return None if due is None else due - NOW


def test_pauses_grow_fourfold_up_to_four_hours() -> None:
    seconds = [pause.total_seconds() for pause in map(_pause, range(1, 8)) if pause is not None]
    assert seconds == [10, 40, 160, 640, 2560, 10240, 14400]


def test_eight_attempts_are_all() -> None:
    assert _pause(8) is None


def test_nothing_is_tried_a_day_after_the_first_attempt() -> None:
    late = NOW + timedelta(hours=24) - timedelta(seconds=9)
    due = next_attempt(POLICY, attempts=1, first_attempt_at=NOW, now=late, retry_after=None, chance=0)
    assert due is None


def test_all_eight_fit_into_the_day() -> None:
    now = NOW
    for attempts in range(1, 8):
        due = next_attempt(
            POLICY, attempts=attempts, first_attempt_at=NOW, now=now, retry_after=None, chance=0
        )
        assert due is not None
        now = due


@given(attempts=st.integers(1, 7), chance=chances)
def test_chance_takes_at_most_half(attempts: int, chance: float) -> None:
    whole, some = _pause(attempts), _pause(attempts, chance=chance)
    assert whole is not None
    assert some is not None
    assert whole / 2 <= some <= whole


@given(
    attempts=st.integers(1, 7),
    chance=chances,
    asked=st.integers(0, 70_000).map(lambda s: timedelta(seconds=s)),
)
def test_never_before_the_provider_asked(attempts: int, chance: float, asked: timedelta) -> None:
    pause = _pause(attempts, chance=chance, asked=asked)
    assert pause is not None
    assert pause >= asked


def test_a_provider_that_asks_for_more_than_a_day_has_refused() -> None:
    assert _pause(1, asked=timedelta(hours=25)) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 5 ", 5),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90),
        ("Sunday, 01-Mar-26 12:01:30 GMT", 90),
        ("Sun Mar  1 12:01:30 2026", 90),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("99999999999999999999", 7 * 24 * 3600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 7 * 24 * 3600),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, seconds: int) -> None:
    assert retry_after(value, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "1.5", "٣", "Sun, 99 Mar 2026 12:00:00 GMT"])
def test_anything_else_says_nothing(value: str | None) -> None:
    assert retry_after(value, NOW) is None


@given(st.text(max_size=60))
def test_no_text_breaks_it(value: str) -> None:
    read = retry_after(value, NOW)
    assert read is None or timedelta() <= read <= timedelta(days=7)
