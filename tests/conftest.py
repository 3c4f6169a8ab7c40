"""The real stack, one per test run, started by the first test that needs it.

One PostgreSQL, one broker and one Connect worker serve all tests: **a test is a tenant**, isolated by a fresh
one. A second run in the same clone gets a folder, and so a stack, of its own; and so does each of the two processes
that `make test` runs side by side: whatever needs the broker or Connect in the one, everything else in the other.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from connectors.debezium.apply import apply
from connectors.debezium.client import ConnectClient
from connectors.debezium.config import ConnectorConfig
from connectors.debezium.slot import read_slot
from connectors.debezium.watch import CaptureProcess
from connectors.kafka.clients import admin_client
from connectors.kafka.topics import topics_for
from connectors.postgres.migrate import register_products
from deploy.local.passwords import DOMAIN
from deploy.local.running import ALL, StackRunningError
from deploy.local.stack import Stack
from producers import tenants

ROOTS = Path(__file__).parents[1] / "build"
MOST_AT_ONCE = 8
STREAMING_WITHIN_S = 60.0
PRODUCTS = ("loans", "worklog")
"""What the platform ships, and the product that lives in the tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two groups for `--dist loadgroup`: one stack with a broker is enough, and tests that kill its engines must not
    find others on it at that moment.
    """
    for item in items:
        needs = "engines" if "stack" in getattr(item, "fixturenames", ()) else "database"
        item.add_marker(pytest.mark.xdist_group(needs))


@pytest.fixture(scope="session")
def pg_only() -> Iterator[Stack]:
    """The run's stack with at least PostgreSQL: bootstrapped, migrated, products registered."""
    stack = _fresh_stack()
    try:
        with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
            register_products(owner, PRODUCTS)
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def stack(pg_only: Stack) -> Stack:
    """The run's stack, with everything running."""
    pg_only.add(ALL)
    return pg_only


@pytest.fixture(scope="session")
def pipeline(stack: Stack) -> Iterator[Stack]:
    """The run's stack with topics, connector and its supervisor: what is committed to the outbox from now on is
    streamed, also after a test has restarted the database or killed Connect.
    """
    config = ConnectorConfig.from_settings(stack.settings)
    admin = admin_client(stack.settings)
    with (
        ConnectClient(stack.connect_url) as connect,
        psycopg.connect(stack.admin_dsn, autocommit=True) as database,
    ):
        apply(connect, admin, config, topics_for(PRODUCTS))
        deadline = time.monotonic() + STREAMING_WITHIN_S
        while not (is_followed(database, config.slot) and connect.status(config.name).is_streaming):
            assert time.monotonic() < deadline, f"the connector does not stream: {stack.layout.logs}"
            time.sleep(0.05)
    stop = threading.Event()
    supervisor = threading.Thread(
        target=CaptureProcess(stack.settings, stop=stop).run, name="capture", daemon=True
    )
    supervisor.start()
    try:
        yield stack
    finally:
        stop.set()
        supervisor.join(timeout=30)


def is_followed(database: psycopg.Connection, slot: str) -> bool:
    """Whether the connector reads from its slot; rows committed before the slot exists are not streamed."""
    found = read_slot(database, slot)
    return found is not None and found.active


@pytest.fixture
def tenant(pg_only: Stack) -> str:
    """A tenant that no other test knows, granted to the loan service."""
    name = f"t-{uuid.uuid4().hex[:16]}"
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as owner:
        tenants.create(owner, name, roles=[DOMAIN])
    return name


def _fresh_stack() -> Stack:
    """Erase what an earlier run left and start PostgreSQL; beside a run that is at it, in the next folder."""
    for number in range(1, MOST_AT_ONCE + 1):
        root = ROOTS / f"test-stack-{number}"
        try:
            Stack.erase(root)
            return Stack.start(root, {"postgres"})
        except StackRunningError:
            continue
    raise RuntimeError(f"{MOST_AT_ONCE} test runs are under way in {ROOTS}")
