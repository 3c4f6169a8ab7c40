"""One transaction per batch: fence, visibility, anti-join, load, decide, write, advance.

Everything here is database work on plain records; Kafka is the loop's. That is what lets a state machine
drive the real code with two consumers, a stale one and records that arrive twice or late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic

import psycopg
from psycopg.types.json import Jsonb

from connectors.postgres import clock
from connectors.postgres.sql import load
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.errors import DecideError, Kind, classify
from consumers.runtime.fence import Fenced, Partition, compare
from consumers.runtime.group import Decision, DecisionsT, Group, StateT
from consumers.runtime.records import Dead, Read, Record, read
from consumers.runtime.tx import Tx
from schemas.envelope import Event
from schemas.products.catalogue import Catalogue
from schemas.products.model import UnknownStepError
from schemas.states import DeadReason, DecisionOutcome, DropReason

QUERIES = load("consumers.runtime", "queries.sql")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class NotVisible(Exception):  # noqa: N818 a verdict that rolls the transaction back, not an error
    """Records whose outbox rows this session cannot see: not yet, or they never committed."""

    def __init__(self, event_ids: Sequence[str]) -> None:
        super().__init__(f"{len(event_ids)} outbox rows are not visible yet")
        self.event_ids = event_ids


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

    Not thread-safe: one per connection, one connection per process and group.
    """

    def __init__(self, group: Group[StateT, DecisionsT], catalogue: Catalogue, horizon: timedelta) -> None:
        self._group = group
        self._catalogue = catalogue
        self._horizon = horizon

    def read(self, records: Iterable[Record]) -> list[Read | Dead]:
        """Decode a batch, once, before any transaction."""
        return [read(record, self._catalogue) for record in records]

    def commit(
        self,
        conn: psycopg.Connection[Any],
        batch: Sequence[Read | Dead],
        expected: Mapping[Partition, int],
        *,
        singly: bool = False,
        give_up_absent: bool = False,
    ) -> Committed:
        """Decide and commit a batch; `expected` holds this process's position for each of its partitions.

        Raises `Fenced` when the database stands elsewhere and `NotVisible` when rows cannot be seen yet
        (with `give_up_absent` they become dead letters instead); anything else is for `classify`. Whatever
        is raised, nothing of the batch has been written. `singly` gives each event a savepoint of its own:
        what fails alone twice becomes a dead letter and the rest goes through.
        """
        places = {(place.topic, place.partition): place for place in expected}
        with conn.transaction(), conn.cursor(binary=True) as cursor:
            reading, real = clock.read_at(conn)
            tx = Tx(cursor, reading.now(real))
            self._fence(tx, expected)
            result = Committed(_positions(batch, places, expected))
            fresh = self._fresh(tx, batch, result, real - self._horizon, give_up_absent=give_up_absent)
            if singly:
                for item in fresh:
                    self._apply_alone(conn, tx, item, result)
            elif fresh:
                result.decisions.extend(self._apply(tx, [item.event for item in fresh]))
            self._bury(tx, result.dead, places)
            self._advance(tx, result.positions)
        return result

    def _fence(self, tx: Tx, expected: Mapping[Partition, int]) -> None:
        rows = tx.rows(
            QUERIES["lock_progress"],
            {
                "group": self._group.name,
                "topic_ids": [place.topic_id for place in expected],
                "partitions": [place.partition for place in expected],
            },
        )
        found = {(topic_id, partition): offset for topic_id, partition, offset in rows}
        actual = {p: found[p.topic_id, p.partition] for p in expected if (p.topic_id, p.partition) in found}
        if moved := compare(expected, actual):
            raise Fenced(moved)

    def _fresh(
        self,
        tx: Tx,
        batch: Sequence[Read | Dead],
        result: Committed,
        oldest: datetime,
        *,
        give_up_absent: bool,
    ) -> list[Read]:
        """The records that are committed facts and have no decision yet, in order, each event once.

        Fills `result` with what is dead, refused as too old, or was decided before.
        """
        known: dict[tuple[str, str], Read | Dead] = {}
        for item in batch:
            event_id, tenant_id = _identity(item)
            if event_id is None or tenant_id is None:
                assert isinstance(item, Dead)  # an event has an identity
                result.dead.append(item)
            elif known.setdefault((event_id, tenant_id), item) is not item:
                result.skipped += 1
        exceptions = self._probe(tx, known)
        fresh: list[Read] = []
        absent: list[str] = []
        dead_decisions: list[Dead] = []
        for ordinal, (identity, item) in enumerate(known.items(), start=1):
            visible, decided = exceptions.get(ordinal, (True, False))
            recorded_at = item.event.recorded_at if isinstance(item, Read) else None
            too_old = recorded_at is not None and recorded_at < oldest
            if decided:
                result.skipped += 1
            elif not visible and too_old:
                result.forgotten += 1
            elif not visible and not give_up_absent:
                absent.append(identity[0])
            elif not visible:
                result.dead.append(_not_committed(item))
            elif isinstance(item, Dead):
                result.dead.append(item)
                dead_decisions.append(item)
            elif too_old:
                result.decisions.append(Decision(item.event, DecisionOutcome.DROPPED, DropReason.TOO_OLD))
            else:
                fresh.append(item)
        if absent:
            raise NotVisible(absent)
        self._record(tx, result.decisions)
        self._record_dead(tx, dead_decisions)
        return fresh

    def _probe(self, tx: Tx, known: Mapping[tuple[str, str], object]) -> Mapping[int, tuple[bool, bool]]:
        rows = tx.rows(
            QUERIES["probe"],
            {
                "group": self._group.name,
                "event_ids": text_array([event_id for event_id, _ in known]),
                "tenant_ids": text_array([tenant_id for _, tenant_id in known]),
            },
        )
        return {ordinal: (visible, decided) for ordinal, visible, decided in rows}

    def _apply(self, tx: Tx, events: Sequence[Event]) -> Sequence[Decision]:
        state = self._group.load(tx, events)
        try:
            decided = self._group.decide(state, events)
        except Exception as error:  # whatever a decision raises is poison, never the weather
            raise DecideError(f"{self._group.name} could not decide: {error}") from error
        self._group.write(tx, decided)
        self._record(tx, decided.decisions)
        return decided.decisions

    def _apply_alone(self, conn: psycopg.Connection[Any], tx: Tx, item: Read, result: Committed) -> None:
        """One event behind a savepoint. A second try tells a passing collision from poison."""
        failure: Exception | None = None
        for _ in range(2):
            try:
                with conn.transaction():
                    decided = self._apply(tx, [item.event])
            except (psycopg.Error, DecideError) as error:
                if classify(error) is not Kind.POISON:
                    raise
                failure = error
            else:
                result.decisions.extend(decided)
                return
        event = item.event
        unknown_step = failure is not None and isinstance(failure.__cause__, UnknownStepError)
        reason = DeadReason.UNKNOWN_STEP if unknown_step else DeadReason.POISON
        dead = Dead(item.record, reason, str(failure), event.tenant_id, event.event_id, event.event_type)
        result.dead.append(dead)
        self._record_dead(tx, [dead])

    def _record(self, tx: Tx, decisions: Sequence[Decision]) -> None:
        if not decisions:
            return
        tx.run(
            QUERIES["insert_decisions"],
            {
                "group": self._group.name,
                "now": tx.now,
                "event_ids": text_array([decision.event.event_id for decision in decisions]),
                "tenant_ids": text_array([decision.event.tenant_id for decision in decisions]),
                "outcomes": text_array([decision.outcome for decision in decisions]),
                "reasons": nullable_array([decision.reason for decision in decisions]),
                "nudge_ids": nullable_array([decision.nudge_id for decision in decisions]),
                "cancelled_nudge_ids": nullable_array(
                    [decision.cancelled_nudge_id for decision in decisions]
                ),
            },
            expect=len(decisions),
        )

    def _record_dead(self, tx: Tx, dead: Sequence[Dead]) -> None:
        if not dead:
            return
        nothing = nullable_array([None] * len(dead))
        tx.run(
            QUERIES["insert_decisions"],
            {
                "group": self._group.name,
                "now": tx.now,
                "event_ids": nullable_array([item.event_id for item in dead]),
                "tenant_ids": nullable_array([item.tenant_id for item in dead]),
                "outcomes": text_array([DecisionOutcome.DEAD_LETTER] * len(dead)),
                "reasons": text_array([item.reason for item in dead]),
                "nudge_ids": nothing,
                "cancelled_nudge_ids": nothing,
            },
            expect=len(dead),
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
                "tenant_ids": [_storable(item.tenant_id) for item in dead],
                "event_ids": [_uuid_or_none(item.event_id) for item in dead],
                "event_types": [_storable(item.event_type) for item in dead],
                "keys": [record.key for record in records],
                "headers": [Jsonb(_printable(record.headers)) for record in records],
                "bodies": [record.value for record in records],
                "reasons": [item.reason.value for item in dead],
                "errors": [_storable(item.error) for item in dead],
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


def _identity(item: Read | Dead) -> tuple[str | None, str | None]:
    if isinstance(item, Read):
        return item.event.event_id, item.event.tenant_id
    return _uuid_or_none(item.event_id), _storable(item.tenant_id)


def _not_committed(item: Read | Dead) -> Dead:
    event_id, tenant_id = _identity(item)
    event_type = item.event.event_type if isinstance(item, Read) else item.event_type
    return Dead(
        item.record,
        DeadReason.NOT_COMMITTED,
        "no outbox row with this id is visible: its transaction never committed, or the database was "
        "restored to before it; once the row exists, `tellonce dead-letter retry` sends it again",
        tenant_id,
        event_id,
        event_type,
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


def _uuid_or_none(text: str | None) -> str | None:
    return text if text is not None and _UUID.fullmatch(text) else None


def _storable(text: str | None) -> str | None:
    """Postgres text cannot hold NUL; what garbage said is kept readable."""
    return None if text is None else text.replace("\x00", "\\0")


def _printable(headers: Sequence[tuple[str, bytes | None]]) -> list[list[str | None]]:
    return [
        [_storable(name), None if value is None else _storable(value.decode("utf-8", "backslashreplace"))]
        for name, value in headers
    ]
