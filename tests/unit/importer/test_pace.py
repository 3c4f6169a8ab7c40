"""The rate limit holds over time."""

from __future__ import annotations

import pytest

from producers.importer.pace import Pace


class Watch:
    """A monotonic clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def test_the_rate_holds_over_time() -> None:
    watch = Watch()
    pace = Pace(1000.0, monotonic=watch, sleep=watch.sleep)
    sent = 0
    while sent < 10_000:
        pace.take(250)
        sent += 250
    assert watch.now - 100.0 == pytest.approx(9.75, abs=0.01)


def test_an_idle_second_is_the_most_that_is_made_up_for() -> None:
    watch = Watch()
    pace = Pace(100.0, monotonic=watch, sleep=watch.sleep)
    watch.now += 3600
    for _ in range(3):
        pace.take(100)
    assert watch.now - 3700.0 == pytest.approx(1.0, abs=0.01)


def test_batches_are_small_when_limited_and_whole_when_not() -> None:
    assert Pace(None).batch(2000) == 2000
    assert Pace(400.0).batch(2000) == 100
    assert Pace(1.0).batch(2000) == 1


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        Pace(0)
