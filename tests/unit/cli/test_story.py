"""What became of an event, in words: every outcome, every reason, every end of a nudge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deploy.cli.messages import Notice, Notified
from deploy.cli.story import CANCELLED, DEAD, DROPPED, Letter, Row, in_words, place_notified, tell
from deploy.cli.why import _rows
from schemas.states import NOBODY, DeadReason, DecisionOutcome, DropReason, NudgeReason

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
    dead_letter_id=None,
)
UNDECIDED = DECIDED._replace(group_name=None, outcome=None, decided_at=None, nudge_id=None)
LETTER = Letter(
    dead_letter_id=7,
    record="topic-id/3/41",
    event_id="e-0",
    event_type="loans.initiated",
    group_name="supersession.loans",
    reason=DeadReason.NOT_COMMITTED,
    created_at=AT,
)


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
        (DecisionOutcome.FIRED, "told"),
        (DecisionOutcome.CANCELLED, "nobody to tell"),
        (DecisionOutcome.IGNORED, "nothing here"),
        (DecisionOutcome.TAKEN, "its channel"),
    ],
)
def test_an_outcome_in_words(outcome: DecisionOutcome, said: str) -> None:
    assert said in in_words(DECIDED._replace(outcome=outcome))


@pytest.mark.parametrize("outcome", [DecisionOutcome.IMMEDIATE, DecisionOutcome.FIRED])
def test_nobody_to_tell_is_said(outcome: DecisionOutcome) -> None:
    assert "nobody to tell" not in in_words(DECIDED._replace(outcome=outcome, reason=None))
    assert "nobody to tell" in in_words(DECIDED._replace(outcome=outcome, reason=NOBODY))


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


def test_a_dead_letter_is_told_with_its_number() -> None:
    row = DECIDED._replace(outcome=DecisionOutcome.DEAD_LETTER, reason=DeadReason.EMPTY, dead_letter_id=12)

    assert in_words(row) == f"dead letter 12: {DEAD[DeadReason.EMPTY]}"


def test_a_letter_without_a_row_stands_where_its_group_met_it() -> None:
    minute = timedelta(minutes=1)
    rows = [
        DECIDED._replace(event_id="e-1", decided_at=AT - minute),
        DECIDED._replace(event_id="e-2", decided_at=AT),
        DECIDED._replace(event_id="e-3", decided_at=AT + minute),
        UNDECIDED._replace(event_id="e-4"),
    ]
    letters = [
        LETTER,
        LETTER._replace(dead_letter_id=8, record="topic-id/3/42", event_id=None, event_type=None),
    ]

    told = tell(rows, letters)

    assert [line.event_id for line in told] == ["e-1", "e-2", "e-0", None, "e-3", "e-4"]
    (decision,) = told[2].decisions
    assert (decision.outcome, decision.reason, decision.dead_letter) == ("dead_letter", "not_committed", 7)
    assert decision.words == f"dead letter 7: {DEAD[DeadReason.NOT_COMMITTED]}"
    assert told[2].occurred_at is None


def test_a_letter_from_before_all_else_comes_first() -> None:
    told = tell([DECIDED], [LETTER._replace(created_at=AT - timedelta(seconds=1))])

    assert [line.event_id for line in told] == ["e-0", "e-1"]
    assert [line.event_id for line in tell([], [LETTER])] == ["e-0"]


def test_one_record_that_two_groups_refused_is_told_once() -> None:
    (line,) = tell([], [LETTER, LETTER._replace(dead_letter_id=8, group_name="rules.loans")])

    assert [decision.dead_letter for decision in line.decisions] == [7, 8]


def test_a_letter_of_an_event_that_has_its_row_is_told_there() -> None:
    (line,) = tell([UNDECIDED], [LETTER._replace(event_id="e-1", reason=DeadReason.WRONG_TENANT)])

    assert [decision.reason for decision in line.decisions] == ["wrong_tenant"]
    assert line.recorded_at == AT


def notified(event_id: str, nudge_id: str | None = None) -> Notified:
    return Notified(
        Notice("m-1", event_id, nudge_id, "loans.sign_offer", "u-1", "applicant", "en", "UTC", AT), []
    )


def test_who_was_told_stands_with_the_event_and_for_a_nudge_with_its_timer() -> None:
    lines = tell([DECIDED, DECIDED._replace(event_id="t-1", event_type="tellonce.nudge_due")])

    place_notified(lines, [at_once := notified("e-1"), due := notified("e-1", "n-1")], {"n-1": "t-1"})

    assert [line.notified for line in lines] == [[at_once], [due]]


def test_who_was_told_is_not_lost_with_the_event() -> None:
    lines = tell([DECIDED])

    place_notified(lines, [first := notified("gone"), second := notified("gone")], {})

    assert [(line.event_id, line.event_type) for line in lines] == [
        ("e-1", "loans.offer_submitted"),
        ("gone", None),
    ]
    assert lines[1].notified == [first, second]


def test_a_nudge_that_nobody_can_be_told_of_says_so_once() -> None:
    said = in_words(
        DECIDED._replace(
            outcome=DecisionOutcome.CANCELLED,
            reason=NOBODY,
            nudge_id=None,
            cancelled_nudge_id="n-1",
            cancelled_kind="loans.sign_offer",
            cancelled_reason=NudgeReason.NOBODY,
        )
    )

    assert said.startswith("nudge loans.sign_offer due and cancelled: nobody to tell")
    assert said.count("nobody") == 1


def test_that_a_group_is_not_concerned_is_said_only_when_nobody_says_more() -> None:
    ignored = DECIDED._replace(group_name="rules.loans", outcome=DecisionOutcome.IGNORED, nudge_id=None)
    (both,) = tell([DECIDED, ignored])
    (alone,) = tell([ignored])
    (undecided,) = tell([UNDECIDED])

    assert [row[2] for row in _rows(both)] == [in_words(DECIDED)]
    assert [row[2] for row in _rows(alone)] == ["nothing here is about it"]
    assert [row[2] for row in _rows(undecided)] == ["on its way: not decided yet"]
