"""What `status` concludes from what it read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connectors.kafka.offsets import TopicOffsets
from deploy.cli.overview import Completeness, Overview, _part, behind, completeness_problems

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def seen(
    answered_at: datetime | None = NOW, *, round_at: datetime | None = NOW, unanswered: tuple[str, ...] = ()
) -> Completeness:
    return Completeness(round_at, answered_at, 0, 0, list(unanswered), full_owed=False)


def test_a_group_is_behind_by_what_lies_between_its_positions_and_the_ends() -> None:
    ends = {"events.loans": TopicOffsets("id", {0: 10, 1: 5, 2: 0})}
    progress = {("g", "id", 0): 7, ("other", "id", 1): 5, ("g", "older id", 1): 5}

    assert behind("g", ["events.loans"], ends, progress) == 3 + 5


def test_a_topic_that_is_missing_counts_for_nothing() -> None:
    assert behind("g", ["events.gone"], {}, {}) == 0


def test_a_recent_full_verdict_is_no_problem() -> None:
    assert completeness_problems(seen(NOW - timedelta(minutes=1)), NOW) == []


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "no clock has reconciled"),
        (seen(round_at=None), "no clock has reconciled"),
        (seen(unanswered=("capture",)), "because of capture"),
        (seen(None), "does a clock run?"),
        (seen(NOW - timedelta(minutes=6)), "does a clock run?"),
    ],
)
def test_without_one_it_says_why_nobody_knows(found: Completeness | None, says: str) -> None:
    (problem,) = completeness_problems(found, NOW)

    assert says in problem


def test_what_is_away_becomes_a_problem_and_not_the_end() -> None:
    def away() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/nowhere")

    found = Overview()
    _part(found, away)

    assert found.problems == ["/nowhere: No such file or directory"]
