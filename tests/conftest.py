"""The real stack, one per test run, started by the first test that needs it.

One PostgreSQL, one broker and one Connect worker serve all tests: **a test is a tenant**, isolated by a fresh
one. A second run in the same clone gets a folder, and so a stack, of its own; and so does each of the two processes
that `make test` runs side by side: whatever needs the broker or Connect in the one, everything else in the other.
"""

from __future__ import annotations

import fcntl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling  # type: ignore[import-untyped]  # it ships no types

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
ENGINES = (
    "tests/acceptance/",
    "tests/integration/capture/",
    "tests/integration/clock/test_slot_dropped.py",
    "tests/integration/runtime/test_loop.py",
    "tests/integration/runtime/test_real_log.py",
)
"""Where the tests are that need the broker or Connect."""
MOST_AT_ONCE = 8
STREAMING_WITHIN_S = 60.0
PRODUCTS = ("loans", "worklog")
"""What the platform ships, and the product that lives in the tests."""


class SideBySide(LoadScopeScheduling):  # type: ignore[misc]  # so its base is Any
    """One pile for all that need the broker or Connect, begun first: one stack with a broker is enough, and tests that
    kill its engines must not find others on it at that moment. Beside it folder by folder, by whoever is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "engines" if nodeid.startswith(ENGINES) else nodeid.partition("::")[0].rpartition("/")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SideBySide:
    """With `-n 2`, as `make test` has it."""
    config.option.loadscopereorder = False  # in the order of the names: acceptance comes first
    return SideBySide(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever schedules sees names only: they have to tell which tests need more than the database."""
    for item in items:
        if "stack" in getattr(item, "fixturenames", ()) and not item.nodeid.startswith(ENGINES):
            raise pytest.UsageError(f"{item.nodeid} needs the broker or Connect: its file belongs in ENGINES")


@pytest.fixture(scope="session")
def pg_only() -> Iterator[Stack]:
    """The run's stack with at least PostgreSQL: bootstrapped, migrated, products registered."""
    with _fresh_stack() as stack:
        with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
            register_products(owner, PRODUCTS)
        yield stack


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


@contextmanager
def _fresh_stack() -> Iterator[Stack]:
    """Erase what an earlier run left and start PostgreSQL; beside a run that is at it, in the next folder.

    The folder is ours by a lock beside it: two that begin at once would both find it free, and erase each other's.
    """
    ROOTS.mkdir(exist_ok=True)
    for number in range(1, MOST_AT_ONCE + 1):
        root = ROOTS / f"test-stack-{number}"
        with root.with_suffix(".lock").open("w") as mine:
            try:
                fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Stack.erase(root)
                stack = Stack.start(root, {"postgres"})
            except (BlockingIOError, StackRunningError):
                continue
            try:
                yield stack
            finally:
                stack.stop()
            return
    raise RuntimeError(f"{MOST_AT_ONCE} test runs are under way in {ROOTS}")
