"""What became of an event, in words: every outcome, every reason, every end of a nudge."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from deploy.cli.story import CANCELLED, DEAD, DROPPED, Row, in_words, tell
from schemas.states import DeadReason, DecisionOutcome, DropReason, NudgeReason

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
DECIDED = Row(
    event_id="e-1",
    event_type="loans.offer_submitted",
    occurred_at=AT,
    recorded_at=AT,
    traceparent=None,
    group_name="supersession.loans",
    outcome=DecisionOutcome.SCHEDULED,
    reason=None,
    decided_at=AT,
    nudge_id="n-1",
    nudge_kind="loans.sign_offer",
    nudge_due_at=AT,
    cancelled_nudge_id=None,
    cancelled_kind=None,
    cancelled_reason=None,
)
UNDECIDED = DECIDED._replace(group_name=None, outcome=None, decided_at=None, nudge_id=None)


def test_every_word_of_the_vocabularies_has_its_sentence() -> None:
    assert set(DROPPED) == set(DropReason)
    assert set(DEAD) == set(DeadReason)
    assert set(CANCELLED) == set(NudgeReason)
    for sentences in (DROPPED, DEAD, CANCELLED):
        assert len(set(sentences.values())) == len(sentences)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (DecisionOutcome.SCHEDULED, "loans.sign_offer due 2026-12-01"),
        (DecisionOutcome.IMMEDIATE, "at once"),
        (DecisionOutcome.ADVANCED, "retired"),
        (DecisionOutcome.ENDED, "ended"),
        (DecisionOutcome.RESTARTED, "anew"),
        (DecisionOutcome.LIFECYCLE, "cancels nothing"),
    ],
)
def test_an_outcome_in_words(outcome: DecisionOutcome, said: str) -> None:
    assert said in in_words(DECIDED._replace(outcome=outcome))


@pytest.mark.parametrize("reason", list(DropReason))
def test_a_dropped_event_says_why(reason: DropReason) -> None:
    assert in_words(DECIDED._replace(outcome=DecisionOutcome.DROPPED, reason=reason)) == DROPPED[reason]


@pytest.mark.parametrize("reason", list(DeadReason))
def test_a_dead_letter_says_why(reason: DeadReason) -> None:
    said = in_words(DECIDED._replace(outcome=DecisionOutcome.DEAD_LETTER, reason=reason))

    assert said == f"dead letter: {DEAD[reason]}"


@pytest.mark.parametrize("reason", list(NudgeReason))
def test_a_cancelled_nudge_is_named_with_its_reason(reason: NudgeReason) -> None:
    row = DECIDED._replace(cancelled_nudge_id="n-0", cancelled_kind="loans.finish", cancelled_reason=reason)

    said = in_words(row)

    assert "loans.finish cancelled" in said
    assert CANCELLED[reason] in said


def test_a_nudge_that_is_gone_is_named_by_its_id() -> None:
    assert "nudge n-0 cancelled" in in_words(DECIDED._replace(cancelled_nudge_id="n-0"))


def test_an_event_decided_by_two_groups_is_told_once_with_both() -> None:
    (line,) = tell([DECIDED, DECIDED._replace(group_name="rules.loans", outcome=DecisionOutcome.LIFECYCLE)])

    assert [decision.group for decision in line.decisions] == ["supersession.loans", "rules.loans"]


def test_an_event_without_a_decision_is_still_told() -> None:
    (line,) = tell([UNDECIDED])

    assert line.event_id == "e-1"
    assert line.decisions == []


def test_events_keep_the_order_they_were_read_in() -> None:
    told = tell([DECIDED._replace(event_id="e-2"), DECIDED, DECIDED._replace(event_id="e-3")])

    assert [line.event_id for line in told] == ["e-2", "e-1", "e-3"]
