"""The shared connector for what only reads; a database and connector of its own for what breaks them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from psycopg import Connection, conninfo, sql
from pydantic import SecretStr

from connectors.debezium.apply import apply
from connectors.debezium.client import ConnectClient, UnknownConnector
from connectors.debezium.config import ConnectorConfig
from connectors.debezium.rebuild import stop
from connectors.debezium.slot import read_slot
from connectors.kafka.clients import admin_client
from connectors.kafka.topics import topics_for
from connectors.postgres import migrate
from connectors.settings import Settings
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from producers import tenants
from tests.integration.capture.tail import Tail

TOPIC = "events.loans"
WITHIN_S = 60.0


def until(holds: Callable[[], bool], why: Callable[[], object] = lambda: "it did not come to hold") -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)


@dataclass(frozen=True)
class Capture:
    """A connector, the database it reads, and one tenant of it."""

    settings: Settings
    config: ConnectorConfig
    connect: ConnectClient
    admin: AdminClient
    admin_dsn: str = field(repr=False)
    domain_dsn: str = field(repr=False)
    tenant: str

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser and return its rows."""
        with psycopg.connect(self.admin_dsn, autocommit=True) as admin:
            cursor = admin.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def tail(self) -> Tail:
        return Tail(self.settings, self.admin, TOPIC, self.tenant)

    @contextmanager
    def domain(self) -> Iterator[Connection[Any]]:
        with psycopg.connect(self.domain_dsn) as conn:
            yield conn

    def happened(self, count: int = 1, *, subject: str = "L-1") -> list[str]:
        """Commit this many events of one lead, one transaction each; returns their ids."""
        ids = []
        with self.domain() as conn:
            for _ in range(count):
                row = conn.execute(
                    "SELECT platform.append(%s, 'loans', %s, 'loans.initiated', '{}')::text",
                    [self.tenant, subject],
                ).fetchone()
                assert row is not None
                conn.commit()
                ids.append(str(row[0]))
        return ids

    @property
    def is_streaming(self) -> bool:
        """Its task runs and holds the slot."""
        with psycopg.connect(self.admin_dsn, autocommit=True) as conn:
            slot = read_slot(conn, self.config.slot)
        try:
            status = self.connect.status(self.config.name)
        except UnknownConnector:
            return False
        return slot is not None and slot.active and status.is_streaming

    def await_streaming(self) -> None:
        until(lambda: self.is_streaming, lambda: self.connect.status(self.config.name))

    def kick_backend(self) -> None:
        """End the replication backend, as an administrator or a failover would."""
        kick = "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = %s"
        self.run(kick, self.config.slot)

    def drop_slot(self) -> None:
        """Drop the slot, however quickly a running connector takes it back."""

        def dropped() -> bool:
            self.kick_backend()
            try:
                self.run("SELECT pg_drop_replication_slot(%s)", self.config.slot)
            except psycopg.errors.ObjectInUse:
                return False
            return True

        until(dropped)

    def stop_and_drop_slot(self) -> None:
        """Stop the connector, then drop its slot: nobody notices until it is resumed."""
        stop(self.connect, self.config.name)
        self.drop_slot()


@pytest.fixture
def connect(stack: Stack) -> Iterator[ConnectClient]:
    with ConnectClient(stack.connect_url) as client:
        yield client


@pytest.fixture
def admin(stack: Stack) -> AdminClient:
    return admin_client(stack.settings)


@pytest.fixture
def shared(pipeline: Stack, connect: ConnectClient, admin: AdminClient, tenant: str) -> Capture:
    """The run's one connector, with a fresh tenant: for reading, not for breaking."""
    config = ConnectorConfig.from_settings(pipeline.settings)
    return Capture(pipeline.settings, config, connect, admin, pipeline.admin_dsn, pipeline.domain_dsn, tenant)


@pytest.fixture
def own(stack: Stack, connect: ConnectClient, admin: AdminClient) -> Iterator[Capture]:
    """A migrated database with a connector and slot of its own, streaming; all of it gone afterwards."""
    name = f"capture_{uuid.uuid4().hex[:12]}"
    dsn = {
        role: conninfo.make_conninfo(address, dbname=name)
        for role, address in {
            "admin": stack.admin_dsn,
            "owner": stack.owner_dsn,
            "consumer": stack.consumer_dsn,
            "connect": stack.connect_dsn,
            "domain": stack.domain_dsn,
        }.items()
    }
    settings = stack.settings.model_copy(
        update={
            "database_url": SecretStr(dsn["consumer"]),
            "admin_database_url": SecretStr(dsn["owner"]),
            "connect_database_url": SecretStr(dsn["connect"]),
        }
    )
    config = ConnectorConfig.from_settings(settings).model_copy(update={"name": name, "slot": name})
    tenant = f"t-{uuid.uuid4().hex[:16]}"
    with _superuser(stack) as superuser:
        superuser.execute(sql.SQL("CREATE DATABASE {} OWNER tellonce_owner").format(sql.Identifier(name)))
    try:
        with psycopg.connect(dsn["owner"], autocommit=True) as owner:
            migrate.migrate(owner, ["loans"])
            tenants.create(owner, tenant, roles=[DOMAIN])
        capture = Capture(settings, config, connect, admin, dsn["admin"], dsn["domain"], tenant)
        apply(connect, admin, config, topics_for(["loans"]))
        capture.await_streaming()
        yield capture
    finally:
        # Another connection: a test may have restarted the database.
        with _superuser(stack) as superuser:
            _remove(connect, admin, superuser, config)
            superuser.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _superuser(stack: Stack) -> Connection[Any]:
    return psycopg.connect(stack.maintenance_dsn, autocommit=True)


def _remove(
    connect: ConnectClient, admin: AdminClient, superuser: Connection[Any], config: ConnectorConfig
) -> None:
    if connect.config(config.name) is not None:
        connect.delete(config.name)
    active = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active"
    drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    until(lambda: not superuser.execute(active, [config.slot]).fetchall())
    superuser.execute(drop, [config.slot])
    for future in admin.delete_topics([topic.name for topic in config.own_topics]).values():
        future.result()
