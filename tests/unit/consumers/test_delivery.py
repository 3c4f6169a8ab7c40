"""A claim and a record, decided: pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.providers.model import Answer, Outcome
from consumers.delivery.decide import (
    LOOK_AGAIN,
    OVERTAKE_AFTER,
    RETRIES,
    Candidate,
    Recorded,
    Standing,
    Verdict,
    claim,
    is_cut_off,
    record,
)
from schemas.states import DeliveryState

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
REAL = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PACE = 60.0
READY = Candidate(
    delivery_id="d",
    tenant_id="t",
    state=DeliveryState.QUEUED,
    due_at=NOW,
    expires_at=None,
    lease_until=None,
    standing=Standing.LIVE,
    is_complete=True,
    role="advisor",
    holds_role=True,
    is_active=True,
    address="+49",
    has_account=True,
    may_resend=True,
    is_blocked=False,
)
LEASED = READY._replace(state=DeliveryState.SENDING, lease_until=REAL)


def verdict(each: Candidate, *, free: bool = True) -> tuple[Verdict, str | None, datetime | None]:
    (made,) = claim([each], now=NOW, real=REAL, pace=PACE, take=lambda _: free)
    return made.verdict, made.reason, made.until


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (READY, (Verdict.SEND, None, None)),
        (READY._replace(standing=Standing.NONE), (Verdict.SEND, None, None)),
        (READY._replace(standing=Standing.TOLD), (Verdict.SEND, None, None)),
        (READY._replace(standing=Standing.GONE), (Verdict.SUPPRESS, "superseded", None)),
        (READY._replace(is_complete=False), (Verdict.DEFER, "past_incomplete", NOW + LOOK_AGAIN * PACE)),
        (READY._replace(holds_role=False), (Verdict.SUPPRESS, "no_longer_advisor", None)),
        (READY._replace(is_active=False), (Verdict.SUPPRESS, "inactive", None)),
        (READY._replace(address=None), (Verdict.SUPPRESS, "no_address", None)),
        (READY._replace(is_blocked=True), (Verdict.DEFER, "in_order", NOW + OVERTAKE_AFTER)),
        (READY._replace(expires_at=NOW), (Verdict.EXPIRE, "expired", None)),
        (READY._replace(due_at=NOW + timedelta(seconds=1)), (Verdict.SKIP, None, None)),
        (READY._replace(state=DeliveryState.SENT), (Verdict.SKIP, None, None)),
        (LEASED, (Verdict.SEND, None, None)),
        (LEASED._replace(lease_until=REAL + timedelta(seconds=1)), (Verdict.SKIP, None, None)),
        (LEASED._replace(may_resend=False), (Verdict.HOLD, "unknown_outcome", None)),
        (LEASED._replace(may_resend=False, standing=Standing.GONE), (Verdict.SUPPRESS, "superseded", None)),
    ],
)
def test_each_question_has_its_verdict(
    each: Candidate, expected: tuple[Verdict, str | None, datetime | None]
) -> None:
    assert verdict(each) == expected


def test_without_an_account_it_waits_for_somebody_to_add_one() -> None:
    made, reason, until = verdict(READY._replace(has_account=False))
    assert (made, reason) == (Verdict.DEFER, "no_account")
    assert until is not None
    assert until > NOW


def test_without_a_free_hand_it_is_parked() -> None:
    assert verdict(READY, free=False) == (Verdict.PARK, None, None)


def test_nobody_s_hand_is_taken_for_what_does_not_go_out() -> None:
    asked: list[str] = []

    def take(each: Candidate) -> bool:
        asked.append(each.delivery_id)
        return True

    gone = READY._replace(standing=Standing.GONE, delivery_id="gone")
    claim([gone, READY], now=NOW, real=REAL, pace=1, take=take)
    assert asked == ["d"]


def recorded(answer: Answer, attempts: int = 1, *, may_resend: bool = True, pace: float = 1.0) -> Recorded:
    return record(
        answer,
        attempts=attempts,
        first_attempt_at=NOW,
        now=NOW,
        pace=pace,
        may_resend=may_resend,
        chance=0.0,
    )


def test_accepted_is_sent_and_rejected_has_failed() -> None:
    assert recorded(Answer(Outcome.ACCEPTED)) == Recorded(DeliveryState.SENT)
    assert recorded(Answer(Outcome.REJECTED)) == Recorded(DeliveryState.FAILED, "rejected")


def test_a_retry_comes_later_each_time_and_ends() -> None:
    made = [recorded(Answer(Outcome.RETRY), attempts) for attempts in range(1, RETRIES.attempts + 1)]
    due = [each.due_at for each in made[:-1]]
    assert all(each is not None for each in due)
    assert due == sorted(due, key=lambda each: each or NOW)
    assert len(set(due)) == len(due)
    assert made[-1] == Recorded(DeliveryState.FAILED, "exhausted")


def test_a_provider_that_names_a_time_is_not_asked_before_it() -> None:
    wait = timedelta(hours=2)
    assert recorded(Answer(Outcome.RETRY, retry_after=wait)).due_at == NOW + wait


def test_a_pause_is_real_time_however_fast_the_clock_runs() -> None:
    slow, fast = (recorded(Answer(Outcome.RETRY), pace=pace).due_at for pace in (1.0, 600.0))
    assert slow is not None
    assert fast is not None
    assert fast - NOW == (slow - NOW) * 600


def test_a_fast_clock_gives_up_no_earlier() -> None:
    """A day of the Clock has passed in two minutes of real time: that is no age for a message."""
    made = record(
        Answer(Outcome.RETRY),
        attempts=2,
        first_attempt_at=NOW - timedelta(days=1),
        now=NOW,
        pace=720.0,
        may_resend=True,
        chance=0.0,
    )
    assert made.state is DeliveryState.QUEUED


def test_an_unknown_outcome_is_sent_again_only_where_that_has_no_second_effect() -> None:
    assert recorded(Answer(Outcome.UNKNOWN)).state is DeliveryState.QUEUED
    assert recorded(Answer(Outcome.UNKNOWN), may_resend=False) == Recorded(
        DeliveryState.HELD, "unknown_outcome"
    )


@given(
    each=st.builds(
        READY._replace,
        state=st.sampled_from(DeliveryState),
        standing=st.sampled_from(Standing),
        is_complete=st.booleans(),
        holds_role=st.booleans(),
        is_active=st.booleans(),
        address=st.none() | st.just("+49"),
        is_blocked=st.booleans(),
        may_resend=st.booleans(),
        due_at=st.sampled_from([NOW, NOW + timedelta(days=1)]),
        expires_at=st.sampled_from([None, NOW, NOW + timedelta(days=1)]),
        lease_until=st.sampled_from([REAL, REAL + timedelta(days=1)]),
    )
)
def test_nothing_untrue_is_ever_sent(each: Candidate) -> None:
    made, reason, until = verdict(each)
    if made is Verdict.SEND:
        assert each.standing is not Standing.GONE
        assert each.is_complete
        assert each.holds_role
        assert each.is_active
        assert each.address is not None
        assert not each.is_blocked
        assert each.expires_at is None or each.expires_at > NOW
    if made in (Verdict.SUPPRESS, Verdict.HOLD, Verdict.EXPIRE, Verdict.DEFER):
        assert reason, "every end says why"
    assert (until is not None) == (made is Verdict.DEFER)


def test_more_may_be_due_only_where_the_list_was_cut_off() -> None:
    keys = [("d1", "a"), ("d2", "a"), ("d3", "b")]
    assert not is_cut_off([], most=5, per_tenant=5)
    assert not is_cut_off(keys, most=4, per_tenant=3)
    assert is_cut_off(keys, most=3, per_tenant=3), "as many as were asked for"
    assert is_cut_off(keys, most=4, per_tenant=2), "as many of a tenant as were asked for"
