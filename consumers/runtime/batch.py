"""One transaction per batch: fence, visibility, anti-join, load, decide, write, advance.

Everything here is database work on plain records; Kafka is the loop's. That is what lets a state machine
drive the real code with two consumers, a stale one and records that arrive twice or late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic

import psycopg
from psycopg.types.json import Jsonb

from connectors import failpoints
from connectors.failpoints import Failpoint
from connectors.postgres import clock
from connectors.postgres.sql import load
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.errors import deciding
from consumers.runtime.fence import Partition, check
from consumers.runtime.group import Decision, DecisionsT, Group, StateT
from consumers.runtime.records import Dead, Read, Record, read
from consumers.runtime.triage import (
    Identity,
    Line,
    Triage,
    by_identity,
    not_committed,
    storable,
    uuid_or_none,
)
from consumers.runtime.trials import Poison, alone
from consumers.runtime.tx import Answer, Tx
from schemas.envelope import PAYLOAD_LIMIT, Event
from schemas.products.catalogue import Catalogue
from schemas.products.model import UnknownStepError
from schemas.states import DeadReason

QUERIES = load("consumers.runtime", "queries.sql")


class NotVisible(Exception):  # noqa: N818 a verdict that rolls the transaction back, not an error
    """Records whose outbox rows this session cannot see: not yet, or they never committed."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} outbox rows are not visible yet")


@dataclass(slots=True)
class Committed:
    """What one committed batch came to, for positions and metrics."""

    positions: dict[Partition, int]
    decisions: list[Decision] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    skipped: int = 0
    """Records that were decided before: duplicates, replays, resends that were not needed."""
    forgotten: int = 0
    """Records past the horizon whose rows have been retired with their day: nothing to decide any more."""


class BatchTransaction(Generic[StateT, DecisionsT]):
    """Runs a group's three steps on batches of records, each batch in one transaction.

    Not thread-safe: one per connection, one connection per process and group. `committed` is told what a group
    decided, once that has been committed; it must neither fail nor wait, and may be told nothing when a process dies.
    """

    def __init__(
        self,
        group: Group[StateT, DecisionsT],
        catalogue: Catalogue,
        horizon: timedelta,
        payload_limit: int = PAYLOAD_LIMIT,
        committed: Callable[[DecisionsT], None] = lambda _: None,
    ) -> None:
        self._group = group
        self._catalogue = catalogue
        self._horizon = horizon
        self._payload_limit = payload_limit
        self._committed = committed

    def read(self, records: Iterable[Record]) -> list[Read | Dead]:
        """Decode a batch, once, before any transaction."""
        return [read(record, self._catalogue, self._payload_limit) for record in records]

    def commit(
        self,
        conn: psycopg.Connection[Any],
        batch: Sequence[Read | Dead],
        expected: Mapping[Partition, int],
        *,
        singly: bool = False,
        give_up_absent: bool = False,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Committed:
        """Decide and commit a batch; `expected` holds this process's position for each of its partitions.

        Raises `Fenced` when the database stands elsewhere and `NotVisible` when rows cannot be seen yet
        (with `give_up_absent` they become dead letters instead); anything else is for `classify`. Whatever
        is raised, nothing of the batch has been written. `singly` gives each event a savepoint of its own:
        what fails alone twice becomes a dead letter and the rest goes through. `meanwhile` is called while
        Postgres works on the first statements; it must not use this connection.
        """
        places = {(place.topic, place.partition): place for place in expected}
        # A savepoint needs each statement's answer before the next; everything else need not wait.
        with nullcontext() if singly else conn.pipeline() as pipeline, conn.transaction():
            reading, real = clock.read_at(conn)
            tx = Tx(conn, reading.now(real), pipeline)
            known, nameless = by_identity(batch)
            locked = self._lock(tx, expected)
            exceptions = self._probe(tx, known)
            meanwhile()
            check(expected, locked.rows())
            triage = Triage.of(known, exceptions.rows(), real - self._horizon)
            if triage.absent and not give_up_absent:
                raise NotVisible(len(triage.absent))
            self._record(tx, triage.lines)
            result = Committed(
                _positions(batch, places, expected),
                decisions=triage.refused,
                dead=[*nameless, *triage.dead, *map(not_committed, triage.absent)],
                skipped=len(batch) - len(known) - len(nameless) + triage.decided,
                forgotten=triage.forgotten,
            )
            if singly:
                apart = (self._apply_alone(conn, tx, item, result) for item in triage.fresh)
                applied = [decided for decided in apart if decided is not None]
            else:
                applied = [self._apply(tx, [item.event for item in triage.fresh])] if triage.fresh else []
            self._bury(tx, result.dead, places)
            self._advance(tx, result.positions)
            tx.settle()
            failpoints.reach(Failpoint.LOOP_DECIDED)
        failpoints.reach(Failpoint.LOOP_COMMITTED)
        for decided in applied:
            result.decisions.extend(decided.decisions)
            self._committed(decided)
        return result

    def _lock(self, tx: Tx, expected: Mapping[Partition, int]) -> Answer:
        return tx.ask(
            QUERIES["lock_progress"],
            {
                "group": self._group.name,
                "topic_ids": [place.topic_id for place in expected],
                "partitions": [place.partition for place in expected],
            },
        )

    def _probe(self, tx: Tx, identities: Collection[Identity]) -> Answer:
        return tx.ask(
            QUERIES["probe"],
            {
                "group": self._group.name,
                "event_ids": text_array([event_id for event_id, _ in identities]),
                "tenant_ids": text_array([tenant_id for _, tenant_id in identities]),
            },
        )

    def _apply(self, tx: Tx, events: Sequence[Event]) -> DecisionsT:
        state = self._group.load(tx, events)
        with deciding(f"{self._group.name} could not decide"):
            decided = self._group.decide(state, events)
        self._group.write(tx, decided)
        self._record(tx, [Line.of(decision) for decision in decided.decisions])
        return decided

    def _apply_alone(
        self, conn: psycopg.Connection[Any], tx: Tx, item: Read, result: Committed
    ) -> DecisionsT | None:
        """One event by itself; None when it is poison, and a dead letter by now."""
        done = alone(conn, tx, lambda: self._apply(tx, [item.event]))
        if not isinstance(done, Poison):
            return done
        event = item.event
        unknown_step = isinstance(done.failure.__cause__, UnknownStepError)
        reason = DeadReason.UNKNOWN_STEP if unknown_step else DeadReason.POISON
        dead = Dead(item.record, reason, str(done.failure), event.tenant_id, event.event_id, event.event_type)
        result.dead.append(dead)
        self._record(tx, [Line.of_dead(dead)])
        return None

    def _record(self, tx: Tx, lines: Sequence[Line]) -> None:
        if not lines:
            return
        event_ids, tenant_ids, outcomes, reasons, nudge_ids, cancelled_nudge_ids = zip(*lines, strict=True)
        tx.run(
            QUERIES["insert_decisions"],
            {
                "group": self._group.name,
                "now": tx.now,
                "event_ids": text_array(event_ids),
                "tenant_ids": text_array(tenant_ids),
                "outcomes": text_array(outcomes),
                "reasons": nullable_array(reasons),
                "nudge_ids": nullable_array(nudge_ids),
                "cancelled_nudge_ids": nullable_array(cancelled_nudge_ids),
            },
            expect=len(lines),
        )

    def _bury(self, tx: Tx, dead: Sequence[Dead], places: Mapping[tuple[str, int], Partition]) -> None:
        if not dead:
            return
        records = [item.record for item in dead]
        tx.send(
            QUERIES["insert_dead_letters"],
            {
                "group": self._group.name,
                "now": tx.now,
                "topics": [record.topic for record in records],
                "topic_ids": [places[record.topic, record.partition].topic_id for record in records],
                "partitions": [record.partition for record in records],
                "offsets": [record.offset for record in records],
                "tenant_ids": [storable(item.tenant_id) for item in dead],
                "event_ids": [uuid_or_none(item.event_id) for item in dead],
                "event_types": [storable(item.event_type) for item in dead],
                "keys": [record.key for record in records],
                "headers": [Jsonb(_printable(record.headers)) for record in records],
                "bodies": [record.value for record in records],
                "reasons": [item.reason.value for item in dead],
                "errors": [storable(item.error) for item in dead],
            },
        )

    def _advance(self, tx: Tx, positions: Mapping[Partition, int]) -> None:
        tx.run(
            QUERIES["advance_progress"],
            {
                "group": self._group.name,
                "now": tx.now,
                "topic_ids": [place.topic_id for place in positions],
                "partitions": [place.partition for place in positions],
                "next_offsets": list(positions.values()),
            },
            expect=len(positions),
        )


def _positions(
    batch: Sequence[Read | Dead],
    places: Mapping[tuple[str, int], Partition],
    expected: Mapping[Partition, int],
) -> dict[Partition, int]:
    """The positions after the batch, for the partitions it has records of."""
    positions: dict[Partition, int] = {}
    for item in batch:
        place = places[item.record.topic, item.record.partition]
        positions[place] = max(positions.get(place, expected[place]), item.record.offset + 1)
    return positions


def _printable(headers: Sequence[tuple[str, bytes | None]]) -> list[list[str | None]]:
    return [
        [storable(name), None if value is None else storable(value.decode("utf-8", "backslashreplace"))]
        for name, value in headers
    ]
