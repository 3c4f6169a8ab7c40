"""A breaker opens on systematic failures in a row, lets one probe through, and closes when it is answered."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from connectors.providers.breaker import Breaker, BreakerPolicy, BreakerState
from connectors.providers.model import Answer, Outcome

FINE = Answer(Outcome.ACCEPTED)
REFUSED = Answer(Outcome.REJECTED, status=400)
DOWN = Answer(Outcome.RETRY, status=503, systematic=True)


def _call(breaker: Breaker, answer: Answer, now: float) -> Breaker:
    ticket, breaker = breaker.admit(now)
    assert ticket is not None
    return breaker.after(ticket, answer, now)


def _opened(now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(5):
        breaker = _call(breaker, DOWN, now)
    return breaker


def test_five_in_a_row_open_it_and_nothing_is_admitted_for_five_seconds() -> None:
    breaker = _opened()
    assert breaker.state is BreakerState.OPEN
    assert breaker.admit(4.9)[0] is None
    assert breaker.parked_for(1.0) == 4.0


def test_an_answer_to_a_message_ends_the_row_whatever_it_says() -> None:
    breaker = Breaker()
    for _ in range(20):
        for answer in (DOWN, DOWN, DOWN, DOWN, REFUSED):
            breaker = _call(breaker, answer, 0.0)
    assert breaker.state is BreakerState.CLOSED


def test_one_probe_at_a_time() -> None:
    ticket, breaker = _opened().admit(5.0)
    assert ticket is not None
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.admit(5.1)[0] is None


def test_an_answered_probe_closes_it() -> None:
    breaker = _call(_opened(), REFUSED, 5.0)
    assert breaker.state is BreakerState.CLOSED
    assert breaker.parked_for(5.0) == 0.0


def test_a_failed_probe_doubles_the_pause_up_to_five_minutes() -> None:
    breaker, now, pauses = _opened(), 0.0, []
    for _ in range(9):
        pauses.append(breaker.parked_for(now))
        now += breaker.parked_for(now)
        breaker = _call(breaker, DOWN, now)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_after_closing_the_pause_is_short_again() -> None:
    breaker = _call(_call(_opened(), DOWN, 5.0), FINE, 15.0)
    for _ in range(5):
        breaker = _call(breaker, DOWN, 20.0)
    assert breaker.parked_for(20.0) == 5.0


def test_retry_after_lengthens_the_pause_within_the_bound() -> None:
    for asked, parked in ((60, 60.0), (4000, 300.0)):
        breaker = Breaker(BreakerPolicy(failures=1))
        busy = Answer(Outcome.RETRY, status=429, retry_after=timedelta(seconds=asked), systematic=True)
        assert _call(breaker, busy, 0.0).parked_for(0.0) == parked


def test_late_answers_to_calls_made_before_it_opened_change_nothing() -> None:
    early, breaker = Breaker().admit(0.0)
    assert early is not None
    for _ in range(5):
        breaker = _call(breaker, DOWN, 0.0)
    assert breaker.after(early, FINE, 1.0) == breaker
    probe, half_open = breaker.admit(5.0)
    assert probe is not None
    assert half_open.after(early, FINE, 5.0) == half_open
    assert half_open.after(early, DOWN, 5.0) == half_open


def test_a_probe_not_made_is_anothers_at_once_and_a_lost_one_after_a_minute() -> None:
    ticket, breaker = _opened().admit(5.0)
    assert ticket is not None
    assert breaker.unused(ticket).admit(5.0)[0] is not None
    assert breaker.admit(64.9)[0] is None
    assert breaker.admit(65.0)[0] is not None


@given(st.lists(st.tuples(st.sampled_from([FINE, REFUSED, DOWN]), st.floats(0, 400)), max_size=60))
def test_it_never_parks_longer_than_five_minutes_and_always_comes_back(
    calls: list[tuple[Answer, float]],
) -> None:
    breaker, now = Breaker(), 0.0
    for answer, passed in calls:
        now += passed
        ticket, breaker = breaker.admit(now)
        if ticket is not None:
            breaker = breaker.after(ticket, answer, now)
        assert breaker.parked_for(now) <= 300
        assert breaker.admit(now + breaker.parked_for(now))[0] is not None
