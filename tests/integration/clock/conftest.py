"""A database of its own per test: the reconciler is one per database and looks at all of it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from prometheus_client import CollectorRegistry
from psycopg import Connection, conninfo, sql

from connectors.kafka.offsets import TopicOffsets
from connectors.postgres import migrate
from deploy.local.stack import Stack
from producers.clock.books import Books
from producers.clock.reconcile import Reconciler, ReconcilerOptions
from producers.clock.signals import ClockMetrics

GROUP = "supersession.loans"
TOPIC = "events.loans"
TENANT = "acme"


@pytest.fixture(scope="session")
def template(pg_only: Stack) -> Iterator[str]:
    """A migrated, empty database to copy."""
    name = f"clock_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(pg_only.admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} OWNER tellonce_owner").format(sql.Identifier(name)))
    with psycopg.connect(conninfo.make_conninfo(pg_only.owner_dsn, dbname=name)) as owner:
        migrate.migrate(owner, ["loans"])
    yield name
    # A connection kept since then would not outlive the tests that restart the database.
    with psycopg.connect(pg_only.admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@dataclass
class Database:
    """One test's database, with a slot that confirms when told to: the test plays capture and the group."""

    name: str
    admin_dsn: str
    owner_dsn: str
    consumer_dsn: str
    topics: dict[str, TopicOffsets] = field(default_factory=lambda: {TOPIC: TopicOffsets("topic-1", {0: 0})})
    """The broker's topics, as far as the reconciler asks for them."""

    opened: list[Connection[Any]] = field(default_factory=list)

    def connect(self, dsn: str, *, autocommit: bool = True) -> Connection[Any]:
        """A connection that closes with the test."""
        self.opened.append(psycopg.connect(dsn, autocommit=autocommit))
        return self.opened[-1]

    def books(self) -> Books:
        return Books(self.connect(self.consumer_dsn))

    def reconciler(self, **options: Any) -> tuple[Reconciler, ClockMetrics]:
        metrics = ClockMetrics(CollectorRegistry())
        given: dict[str, Any] = {"slot": self.name, "answer_within_s": 1.0, "poll_s": 0.02}
        return Reconciler(
            self.books(), self.ends, metrics, options=ReconcilerOptions(**(given | options))
        ), metrics

    def ends(self, topics: Collection[str]) -> dict[str, TopicOffsets]:
        return {topic: self.topics[topic] for topic in topics if topic in self.topics}

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement as the owner and return its rows."""
        with psycopg.connect(self.owner_dsn, autocommit=True) as owner:
            cursor = owner.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def happened(self, *subjects: str) -> list[str]:
        """Commit one event for each subject, in order; returns their ids."""
        append = "SELECT platform.append(%s, 'loans', %s, 'loans.initiated', '{}')::text"
        with psycopg.connect(self.owner_dsn, autocommit=True) as owner:
            return [row[0] for subject in subjects for row in owner.execute(append, (TENANT, subject))]

    def decided(self, event_id: str, group: str = GROUP) -> None:
        """The group decides the event."""
        self.run(
            "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at) "
            "VALUES (%s, %s, %s, 'lifecycle', now())",
            event_id,
            TENANT,
            group,
        )

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture reads and confirms what commits, as a running connector does; the records go nowhere."""
        done = threading.Event()

        def capture() -> None:
            with psycopg.connect(self.admin_dsn, autocommit=True) as admin:
                while not done.wait(0.02):
                    admin.execute("SELECT pg_logical_emit_message(false, 'heartbeat', '', true)")
                    admin.execute(
                        "SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", [self.name]
                    )

        thread = threading.Thread(target=capture)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def slot(self, *, exists: bool) -> None:
        """Create or drop the replication slot."""
        with psycopg.connect(self.admin_dsn, autocommit=True) as admin:
            if exists:
                admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self.name])
            else:
                admin.execute("SELECT pg_drop_replication_slot(%s)", [self.name])

    def progressed(self, next_offset: int, *, end: int, group: str = GROUP) -> None:
        """The topic ends at `end`, the group has come to `next_offset`."""
        self.topics[TOPIC] = TopicOffsets("topic-1", {0: end})
        self.run(
            "INSERT INTO platform.consumer_progress VALUES (%s, 'topic-1', 0, %s, %s, now()) "
            "ON CONFLICT (group_name, topic_id, partition) DO UPDATE SET next_offset = excluded.next_offset",
            group,
            TOPIC,
            next_offset,
        )


@pytest.fixture
def database(pg_only: Stack, template: str) -> Iterator[Database]:
    name = f"clock_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(pg_only.admin_dsn, autocommit=True) as admin:
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER tellonce_owner STRATEGY WAL_LOG")
        admin.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))

        def dsn(of: str) -> str:
            return conninfo.make_conninfo(of, dbname=name)

        made = Database(name, dsn(pg_only.admin_dsn), dsn(pg_only.owner_dsn), dsn(pg_only.consumer_dsn))
        made.run(
            "INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES (%s, %s, now())", TENANT, "A"
        )
        made.run(
            "INSERT INTO platform.group_subscription VALUES (%s, %s, now() - interval '1 day')", GROUP, TOPIC
        )
        made.slot(exists=True)
        try:
            yield made
        finally:
            for conn in made.opened:
                conn.close()
            admin.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
                [name],
            )
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
