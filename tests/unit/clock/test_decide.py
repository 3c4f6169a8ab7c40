"""What the reconciler concludes: lost only after capture and every group answered."""

from __future__ import annotations

import pytest

from producers.clock.decide import (
    MAX_RESENDS,
    Behind,
    Candidate,
    Slot,
    Unanswered,
    capture_answer,
    groups_behind,
    judge,
    slot_recreated,
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
        (None, Slot(1, "reserved", 3), True),
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
