"""Whether an event costs more when there is more of everything: the transaction of a batch, small beside large.

Measured where growth could show: the transactions of the real runtime on two databases of one server, in turns.
Kafka and decoding know nothing of history, so they are left out and cannot dilute the ratio.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any, Final

import psycopg
from psycopg import conninfo, sql

from connectors.postgres import migrate
from connectors.registry import load_catalogue
from consumers.runtime.batch import BatchTransaction
from consumers.runtime.database import Database
from consumers.runtime.fence import Partition
from consumers.runtime.loop import BATCH_LIMIT
from consumers.runtime.records import Record
from consumers.supersession.consumer import Supersession
from tests.bench.children import PRODUCTS
from tests.bench.figures import Figure, of_rounds
from tests.bench.history import fill
from tests.bench.journeys import draw
from tests.bench.rig import Rig, append

NAMES: Final = ("growth_history", "growth_tenants")
PRODUCT: Final = "worklog"
EVENTS: Final = 10_000
LEADS: Final = 2_000
ROUNDS: Final = 7
WARM_UP: Final = 2
HISTORY: Final = (5_000, 500_000)
TENANTS: Final = (10, 1_000)

_ROWS = (
    b"SELECT message_key, payload, event_id::text, event_type, subject_id, occurred_at, tenant_id, content_type,"
    b" recorded_at FROM platform.outbox WHERE position > %s ORDER BY position"
)


@dataclass
class Case:
    """A database, the real transaction on it, and where it stands in a topic of one partition."""

    superuser: psycopg.Connection[Any]
    database: Database
    transaction: BatchTransaction[Any, Any]
    tenants: list[str]
    place: Partition
    position: int = 0
    costs: list[float] = field(default_factory=list)

    def round(self, number: int) -> float:
        """Commit new events, decide them batch by batch; returns µs per event of the transactions alone."""
        records = self._records(number)
        spent = 0.0
        for start in range(0, len(records), BATCH_LIMIT):
            batch = self.transaction.read(records[start : start + BATCH_LIMIT])
            began = time.perf_counter()
            done = self.transaction.commit(self.database.connection(), batch, {self.place: self.position})
            spent += time.perf_counter() - began
            self.position = done.positions[self.place]
            assert len(done.decisions) == len(batch)
        return 1e6 * spent / len(records)

    def _records(self, number: int) -> list[Record]:
        last = self.superuser.execute("SELECT coalesce(max(position), 0) FROM platform.outbox").fetchone()
        append(self.superuser, PRODUCT, draw(number, LEADS, EVENTS, self.tenants, f"r{number}"))
        rows = self.superuser.execute(_ROWS, last).fetchall()
        return [_record(self.place.topic, self.position + index, row) for index, row in enumerate(rows)]


def measure(rig: Rig, wanted: Collection[str]) -> list[Figure]:
    """Each ratio from rounds in turns, a small one and a large one."""
    figures = []
    if "growth_history" in wanted:
        note = "rows of outbox and decision before: {:,} and {:,}; nudges 2 in 5; over 14 days"
        small, large = HISTORY
        figures += _compare(rig, "growth_history", (10, small), (10, large), note.format(*HISTORY))
    if "growth_tenants" in wanted:
        few, many = TENANTS
        note = f"{few} and {many:,} tenants; {HISTORY[0]:,} events of history each"
        figures += _compare(rig, "growth_tenants", (few, HISTORY[0]), (many, HISTORY[0]), note)
    return figures


def _compare(rig: Rig, name: str, small: tuple[int, int], large: tuple[int, int], note: str) -> list[Figure]:
    rig.say(f"{name}: making both databases")
    with _case(rig, *small) as one, _case(rig, *large) as other:
        for number in range(ROUNDS + WARM_UP):
            for case in (one, other):
                case.costs.append(case.round(number))
            rig.say(f"{name} round {number}: {one.costs[-1]:.0f} and {other.costs[-1]:.0f} µs per event")
        ours, theirs = one.costs[WARM_UP:], other.costs[WARM_UP:]
        ratios = [more / less for less, more in zip(ours, theirs, strict=True)]
        return [
            of_rounds(name, "ratio", "ratio", ratios, EVENTS, note),
            of_rounds(name, "small", "µs/event", ours, EVENTS, "the transactions alone"),
            of_rounds(name, "large", "µs/event", theirs, EVENTS, "the transactions alone"),
        ]


@contextmanager
def _case(rig: Rig, tenants: int, history: int) -> Iterator[Case]:
    name = f"bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(rig.stack.maintenance_dsn, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} OWNER tellonce_owner").format(sql.Identifier(name)))
        try:
            with _opened(rig, name, tenants, history) as case:
                yield case
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _opened(rig: Rig, name: str, tenants: int, history: int) -> Iterator[Case]:
    def at(dsn: str) -> str:
        return conninfo.make_conninfo(dsn, dbname=name)

    catalogue = load_catalogue([PRODUCTS])
    group = Supersession(catalogue.product(PRODUCT).product)
    place = Partition(f"events.{PRODUCT}", uuid.uuid4().hex, 0)
    with psycopg.connect(at(rig.stack.owner_dsn), autocommit=True) as owner:
        migrate.migrate(owner, [PRODUCT])
    database = Database(at(rig.stack.consumer_dsn), "tellonce-bench")
    with psycopg.connect(at(rig.stack.admin_dsn), autocommit=True) as superuser:
        ids = [f"t-{number}" for number in range(tenants)]
        fill(superuser, PRODUCT, group.name, ids, history)
        superuser.execute(
            "INSERT INTO platform.consumer_progress (group_name, topic_id, partition, topic, next_offset,"
            " updated_at) VALUES (%s, %s, 0, %s, 0, now())",
            [group.name, place.topic_id, place.topic],
        )
        try:
            transaction = BatchTransaction(group, catalogue, timedelta(days=14))
            yield Case(superuser, database, transaction, ids, place)
        finally:
            database.close()


def _record(topic: str, offset: int, row: tuple[Any, ...]) -> Record:
    """The row as the connector would publish it."""
    key, payload, event_id, event_type, subject, occurred, tenant, content, recorded = row
    headers: list[tuple[str, bytes | None]] = [
        ("ce_id", event_id.encode()),
        ("ce_type", event_type.encode()),
        ("ce_source", PRODUCT.encode()),
        ("ce_subject", subject.encode()),
        ("ce_time", occurred.astimezone(UTC).isoformat().encode()),
        ("ce_tenant", tenant.encode()),
        ("content-type", content.encode()),
        ("traceparent", None),
        ("recorded_at", recorded.astimezone(UTC).isoformat().encode()),
    ]
    return Record(topic, 0, offset, key.encode(), headers, payload)
