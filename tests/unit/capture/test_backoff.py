"""Pauses double up to a bound, and only lasting health makes them short again."""

from __future__ import annotations

from connectors.debezium.backoff import Backoff


def test_pauses_double_up_to_the_bound() -> None:
    backoff = Backoff(first_s=1, most_s=8)
    assert [backoff.tried(0) for _ in range(6)] == [1, 2, 4, 8, 8, 8]


def test_the_first_attempt_is_due_at_once_and_the_next_after_the_pause() -> None:
    backoff = Backoff(first_s=2)
    assert backoff.due(0)
    backoff.tried(10)
    assert not backoff.due(11.9)
    assert backoff.due(12)


def test_a_moment_of_health_forgets_nothing() -> None:
    backoff = Backoff(first_s=1, healthy_s=60)
    backoff.tried(0)
    backoff.well(1)
    backoff.well(60)
    assert backoff.tried(60) == 2


def test_a_minute_of_health_forgets() -> None:
    backoff = Backoff(first_s=1, healthy_s=60)
    backoff.tried(0)
    backoff.well(1)
    backoff.well(61)
    assert backoff.due(61)
    assert backoff.tried(61) == 1


def test_trouble_in_between_starts_the_minute_anew() -> None:
    backoff = Backoff(first_s=1, healthy_s=60)
    backoff.tried(0)
    backoff.well(1)
    backoff.trouble()
    backoff.well(30)
    backoff.well(61)
    assert backoff.tried(61) == 2


def test_ten_thousand_failures_do_not_overflow() -> None:
    backoff = Backoff(tries=10_000)
    assert backoff.tried(0) == 60
