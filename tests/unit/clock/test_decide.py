"""What the reconciler concludes: lost only after capture and every group answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producers.clock.decide import (
    DAYS_EVERY,
    FULL_EVERY,
    MAX_RESENDS,
    UNSEEN,
    Behind,
    Candidate,
    Round,
    Slot,
    State,
    Sweep,
    Unanswered,
    capture_answer,
    groups_behind,
    judge,
    slot_recreated,
    sweep_due,
    sweep_from,
)


def row(position: int, *, resends: int = 0, group: str = "supersession.loans") -> Candidate:
    return Candidate(f"e{position}", "a", group, "events.loans", position, resends)


@pytest.mark.parametrize(
    ("slot", "answer"),
    [
        (Slot(100, "reserved", 1), None),
        (Slot(101, "extended", 1), None),
        (Slot(99, "reserved", 1), Unanswered.CAPTURE),
        (Slot(None, "reserved", 1), Unanswered.CAPTURE),
        (Slot(500, "lost", 1), Unanswered.SLOT_LOST),
        (None, Unanswered.NO_SLOT),
    ],
)
def test_capture_answers_only_when_the_slot_passed_the_noted_position(
    slot: Slot | None, answer: Unanswered | None
) -> None:
    assert capture_answer(slot, 100) is answer


@pytest.mark.parametrize(
    ("before", "slot", "recreated"),
    [
        (10, Slot(1, "reserved", 10), False),
        (10, Slot(1, "reserved", 25), False),
        (10, Slot(1, "reserved", 3), True),
        (10, None, True),
        (None, Slot(1, "reserved", 3), False),
        (None, None, True),
    ],
)
def test_a_slot_that_counts_from_the_start_again_is_another_slot(
    before: int | None, slot: Slot | None, recreated: bool
) -> None:
    assert slot_recreated(before, slot) is recreated


def test_a_group_is_behind_until_its_progress_passes_every_end() -> None:
    owed = {"rules.loans": ["t1"], "supersession.loans": ["t1", "t2"]}
    ends = {("t1", 0): 5, ("t1", 1): 0, ("t2", 0): 3}
    progress = {("supersession.loans", "t1", 0): 5, ("supersession.loans", "t2", 0): 2}
    assert groups_behind(owed, ends, progress) == [
        Behind("rules.loans", "t1", 0, 5),
        Behind("supersession.loans", "t2", 0, 1),
    ]
    progress |= {("rules.loans", "t1", 0): 9, ("supersession.loans", "t2", 0): 3}
    assert groups_behind(owed, ends, progress) == []


def test_progress_on_a_recreated_topics_old_id_counts_for_nothing() -> None:
    assert groups_behind({"g": ["new"]}, {("new", 0): 1}, {("g", "old", 0): 100}) == [
        Behind("g", "new", 0, 1)
    ]


def test_lost_rows_are_resent_in_order_and_a_bounded_number_of_times() -> None:
    verdict = judge([row(3), row(1, resends=MAX_RESENDS), row(2, resends=MAX_RESENDS - 1)])
    assert [candidate.position for candidate in verdict.resend] == [2, 3]
    assert [candidate.position for candidate in verdict.give_up] == [1]
    assert verdict.lost == 3


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
RECENT = State(slot_txns=1, answered_at=NOON, days_at=NOON, full_at=NOON)


@pytest.mark.parametrize(
    ("state", "slot_changed", "sweep"),
    [
        (RECENT, False, Sweep.HOUR),
        (replace(RECENT, days_at=NOON - DAYS_EVERY), False, Sweep.DAYS),
        (replace(RECENT, full_at=NOON - FULL_EVERY), False, Sweep.FULL),
        (replace(RECENT, full_owed=True), False, Sweep.FULL),
        (replace(RECENT, answered_at=NOON - UNSEEN), False, Sweep.FULL),
        (RECENT, True, Sweep.FULL),
        (State(), False, Sweep.FULL),
    ],
)
def test_the_widest_sweep_that_is_due_is_made(state: State, slot_changed: bool, sweep: Sweep) -> None:
    assert sweep_due(state, NOON, slot_changed=slot_changed) is sweep


def test_how_far_each_sweep_looks() -> None:
    assert sweep_from(Sweep.HOUR, NOON) == NOON - timedelta(hours=1)
    assert sweep_from(Sweep.DAYS, NOON) == datetime(2026, 11, 30, tzinfo=UTC)
    assert sweep_from(Sweep.FULL, NOON) is None


@given(gaps=st.lists(st.floats(0.1, 3 * 3600), min_size=1, max_size=30), committed=st.floats(0, 1))
def test_no_row_leaves_the_reach_of_the_sweeps_unseen(gaps: list[float], committed: float) -> None:
    """Whatever the time between rounds, a row is looked at by some round after its commit."""
    state, seen = RECENT, False
    rounds = list(accumulate((timedelta(seconds=gap) for gap in gaps), add, initial=NOON))[1:]
    commit = NOON + (rounds[-1] - NOON) * committed
    for now in rounds:
        sweep = sweep_due(state, now, slot_changed=False)
        since = sweep_from(sweep, now)
        seen = seen or (commit <= now and (since is None or since <= commit))
        state = replace(
            state,
            answered_at=now,
            days_at=state.days_at if sweep is Sweep.HOUR else now,
            full_at=now if sweep is Sweep.FULL else state.full_at,
        )
    assert seen


def test_a_round_is_a_full_verdict_only_when_answered_and_whole() -> None:
    done = Round(Sweep.HOUR, NOON)
    assert (done.is_full_verdict, done.end) == (True, "complete")
    assert replace(done, lost=1).end == "lost"
    assert not replace(done, truncated=True).is_full_verdict
    silent = replace(done, lost=1, unanswered=frozenset({Unanswered.GROUP}))
    assert (silent.is_full_verdict, silent.end) == (False, "unanswered")
