"""Everything that `tellonce status` looks at. Each part stands alone: one that is away hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg

from connectors.debezium.status import read_status
from connectors.kafka.offsets import TopicOffsets, begin_offsets, end_offsets
from connectors.postgres import clock
from connectors.postgres.sql import load
from deploy.cli import session
from deploy.cli.alarms import in_words
from deploy.cli.exits import Exit
from deploy.cli.failures import explain
from schemas.states import DeliveryState

QUERIES = load("deploy.cli", "queries.sql")

UNANSWERED_AFTER = timedelta(minutes=5)
"""A clock reconciles every 15 s; so long without a verdict, and nobody knows whether the past is complete."""

Conn = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Lag:
    """A group's distance from the ends of its topics, in records."""

    group: str
    topics: list[str]
    behind: int


@dataclass(frozen=True, slots=True)
class Completeness:
    """How the reconciler's last round ended; every instant is real time."""

    round_at: datetime | None
    answered_at: datetime | None
    undecided: int
    lost_ever: int
    unanswered: list[str]
    full_owed: bool


@dataclass(frozen=True, slots=True)
class Live:
    """A product's live nudges, and how many of them are due."""

    product: str
    live: int
    due: int


@dataclass(frozen=True, slots=True)
class Dead:
    """A group's open dead letters of one reason."""

    group: str
    reason: str
    open: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Messages:
    """A channel's deliveries in one state. Of those queued: how many are due, the first of them, and how many only a
    person can let go on.
    """

    channel: str
    state: str
    count: int
    due: int
    oldest_due_at: datetime | None
    without_account: int
    without_template: int


@dataclass(slots=True)
class Overview:
    """What was found; a part that could not be asked is empty, and `problems` says why in words."""

    now: datetime | None = None
    clock_rate: float = 1.0
    tenants: Mapping[str, int] = field(default_factory=dict)
    capture: Mapping[str, object] | None = None
    lag: list[Lag] | None = None
    completeness: Completeness | None = None
    nudges: list[Live] = field(default_factory=list)
    deliveries: list[Messages] = field(default_factory=list)
    dead_letters: list[Dead] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    failed: Exit | None = None
    """Of the first part that could not be asked: what any other command would have ended with there."""

    @property
    def exit_code(self) -> Exit:
        """How `status` ends: what could not be seen weighs more than what was found."""
        return self.failed or (Exit.PROBLEMS if self.problems else Exit.OK)


def look() -> Overview:
    """Look at everything once."""
    found = Overview()
    _part(found, lambda: _database(found))
    if found.now is not None:
        _part(found, lambda: _capture(found))
        _part(found, lambda: _lag(found))
    return found


def _part(found: Overview, look_at: Callable[[], None]) -> None:
    """One part; what it raises is a finding, not the end."""
    try:
        look_at()
    except Exception as error:  # noqa: BLE001 the boundary's words become a line of the overview
        failure = explain(error)
        found.problems.append(failure.message)
        found.failed = found.failed or Exit(failure.exit_code)


def _database(found: Overview) -> None:
    with session.reader() as conn:
        reading, real = clock.read_at(conn)
        found.now, found.clock_rate = reading.now(real), reading.rate
        every, suspended, held = conn.execute(QUERIES.tenants).fetchone() or (0, 0, 0)
        found.tenants = {"all": every, "suspended": suspended, "held": held}
        found.nudges = [Live(*row) for row in conn.execute(QUERIES.live_nudges).fetchall()]
        found.dead_letters = [Dead(*row) for row in conn.execute(QUERIES.open_dead_letters).fetchall()]
        found.deliveries = [Messages(*row) for row in conn.execute(QUERIES.delivery_counts).fetchall()]
        row = conn.execute(QUERIES.reconciler).fetchone()
        found.completeness = Completeness(*row) if row else None
    found.problems += completeness_problems(found.completeness, real)
    found.problems += delivery_problems(found.deliveries)
    for dead in found.dead_letters:
        found.problems.append(f"{dead.open} open dead letters of {dead.group}: {dead.reason}")


def delivery_problems(seen: Iterable[Messages]) -> list[str]:
    """What nobody but a person can let go on."""
    problems = []
    for each in seen:
        of_channel = f"deliveries on {each.channel}"
        if each.state == DeliveryState.HELD:
            problems.append(
                f"{of_channel}: {each.count:,} on hold until a person decides what becomes of them;"
                f" `tellonce deliveries --state held --channel {each.channel}`, then `retry` or `cancel`"
            )
        if each.without_account:
            problems.append(
                f"{of_channel}: {each.without_account:,} wait for a provider's account; see TELLONCE_ACCOUNTS"
            )
        if each.without_template:
            problems.append(
                f"{of_channel}: {each.without_template:,} wait for a template that does not render;"
                " `tellonce product check`"
            )
    return problems


def completeness_problems(seen: Completeness | None, real: datetime) -> list[str]:
    """Why nobody can say that the past is complete; nothing when somebody can."""
    if seen is None or seen.round_at is None:
        return ["completeness: no clock has reconciled yet; `tellonce run clock`"]
    if seen.unanswered:
        return [f"completeness: no verdict, because of {', '.join(seen.unanswered)}"]
    if seen.answered_at is None or real - seen.answered_at > UNANSWERED_AFTER:
        return ["completeness: no verdict for a while; does a clock run?"]
    return []


def _capture(found: Overview) -> None:
    with session.connect_client() as connect, session.reader() as conn:
        seen = read_status(connect, conn)
    found.capture = seen.as_json()
    found.problems += [f"capture: {in_words(alarm)}" for alarm in seen.alarms]
    if not seen.is_streaming and not seen.alarms:
        found.problems.append("capture: the connector does not stream yet")


def _lag(found: Overview) -> None:
    with session.reader() as conn:
        owed: dict[str, list[str]] = dict(conn.execute(QUERIES.subscriptions).fetchall())
        progress = {
            (group, topic_id, partition): position
            for group, topic_id, partition, position in conn.execute(QUERIES.progress).fetchall()
        }
    admin, wanted = session.kafka_admin(), {topic for topics in owed.values() for topic in topics}
    begins, ends = begin_offsets(admin, wanted), end_offsets(admin, wanted)
    found.lag = [
        Lag(group, topics, behind(group, topics, begins, ends, progress)) for group, topics in owed.items()
    ]
    missing = sorted(wanted - ends.keys())
    found.problems += [f"topic {topic} is missing" for topic in missing]


def behind(
    group: str,
    topics: list[str],
    begins: Mapping[str, TopicOffsets],
    ends: Mapping[str, TopicOffsets],
    progress: Mapping[tuple[str, str, int], int],
) -> int:
    """Records between a group's positions and its topics' ends.

    Where it has no position it has read nothing of what retention has left.
    """
    return sum(
        max(0, end - progress.get((group, ends[topic].topic_id, partition), begin.get(partition, 0)))
        for topic in topics
        if topic in ends
        for begin in [begins[topic].partitions if topic in begins else {}]
        for partition, end in ends[topic].partitions.items()
    )
