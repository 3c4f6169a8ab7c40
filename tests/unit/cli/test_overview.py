"""What `status` concludes from what it read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connectors.debezium.client import ConnectAway
from connectors.debezium.diagnose import Alarm
from connectors.kafka.offsets import TopicOffsets
from deploy.cli.alarms import WORDS, in_words
from deploy.cli.exits import Exit
from deploy.cli.failures import NotConfigured
from deploy.cli.overview import (
    Completeness,
    Messages,
    Overview,
    _part,
    behind,
    completeness_problems,
    delivery_problems,
)
from deploy.cli.status import _complete, _messages

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def seen(
    answered_at: datetime | None = NOW, *, round_at: datetime | None = NOW, unanswered: tuple[str, ...] = ()
) -> Completeness:
    return Completeness(round_at, answered_at, 0, 0, list(unanswered), full_owed=False)


def test_a_group_is_behind_by_what_lies_between_its_positions_and_the_ends() -> None:
    ends = {"events.loans": TopicOffsets("id", {0: 10, 1: 5, 2: 0})}
    progress = {("g", "id", 0): 7, ("other", "id", 1): 5, ("g", "older id", 1): 5}

    assert behind("g", ["events.loans"], {}, ends, progress) == 3 + 5


def test_what_retention_took_before_a_group_began_is_not_owed() -> None:
    begins = {"events.loans": TopicOffsets("id", {0: 8, 1: 100})}
    ends = {"events.loans": TopicOffsets("id", {0: 10, 1: 130})}

    assert behind("g", ["events.loans"], begins, ends, {("g", "id", 0): 9}) == 1 + 30


def test_a_topic_that_is_missing_counts_for_nothing() -> None:
    assert behind("g", ["events.gone"], {}, {}, {}) == 0


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


def test_the_first_part_that_could_not_be_asked_decides_how_it_ends() -> None:
    def missing() -> None:
        raise NotConfigured("TELLONCE_DATABASE_URL is not set")

    def away() -> None:
        raise ConnectAway("Kafka Connect does not answer")

    assert Overview().exit_code == Exit.OK
    assert Overview(problems=["3 open dead letters"]).exit_code == Exit.PROBLEMS
    found = Overview(problems=["3 open dead letters"])
    _part(found, away)
    _part(found, missing)
    assert found.exit_code == Exit.UNAVAILABLE
    assert len(found.problems) == 3


def test_completeness_says_when_the_reconciler_looked_and_when_it_last_knew() -> None:
    told = _complete(seen(NOW - timedelta(minutes=6), unanswered=("capture",))) or ""

    assert "looked 2026-12-01T09:00:00Z" in told
    assert "last full verdict 2026-12-01T08:54:00Z" in told
    assert "last full verdict -" in (_complete(seen(None)) or "")
    assert _complete(seen(round_at=None)) is None


def test_every_alarm_has_its_words() -> None:
    assert set(WORDS) == set(Alarm)
    assert len(set(WORDS.values())) == len(WORDS)
    assert "`tellonce connector resume`" in in_words(Alarm.CONNECTOR_HELD)


def messages(state: str, count: int = 3, **of_queued: int) -> Messages:
    due = of_queued.get("due", 0)
    return Messages(
        "whatsapp",
        state,
        count,
        due,
        NOW if due else None,
        of_queued.get("without_account", 0),
        of_queued.get("without_template", 0),
    )


@pytest.mark.parametrize(
    ("seen_", "says"),
    [
        (messages("held"), "`tellonce deliveries --state held --channel whatsapp`"),
        (messages("queued", without_account=2), "2 wait for a provider's account"),
        (messages("queued", without_template=1), "`tellonce product check`"),
    ],
)
def test_what_only_a_person_can_let_go_on_is_a_problem(seen_: Messages, says: str) -> None:
    (problem,) = delivery_problems([seen_])

    assert problem.startswith("deliveries on whatsapp: ")
    assert says in problem


@pytest.mark.parametrize("state", ["queued", "sending", "sent", "failed", "suppressed", "expired"])
def test_what_goes_its_way_or_has_ended_is_none(state: str) -> None:
    assert delivery_problems([messages(state, due=3 if state == "queued" else 0)]) == []


def test_a_channel_s_deliveries_are_told_by_state_with_the_first_that_is_due() -> None:
    told = _messages([messages("queued", 1_200, due=7), messages("sent"), messages("held", 1)])

    assert told == {
        "whatsapp": "1,200 queued (7 of them due, the first since 2026-12-01T09:00:00Z), 3 sent, 1 held"
    }
