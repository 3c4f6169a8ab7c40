"""A consumer process: one group, one loop, one connection, health and metrics on a port of its own."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from connectors import telemetry
from connectors.kafka.clients import admin_client, consumer_config
from connectors.kafka.topics import TopicSpec
from connectors.logging import get_logger
from connectors.postgres import clock
from connectors.postgres.migrate import verify
from connectors.postgres.sql import load
from connectors.settings import Settings
from consumers.runtime.batch import BatchTransaction
from consumers.runtime.database import Database
from consumers.runtime.group import DecisionsT, Group, StateT
from consumers.runtime.loop import Loop
from consumers.runtime.metrics import RuntimeMetrics
from schemas.products.catalogue import Catalogue

QUERIES = load("consumers.runtime", "queries.sql")

STUCK_AFTER_S = 60.0
"""A loop that has not come round for so long is not waiting for records: it polls five times a second."""

_log = get_logger(__name__)


def run(
    group: Group[StateT, DecisionsT],
    catalogue: Catalogue,
    settings: Settings,
    stopping: threading.Event,
    committed: Callable[[DecisionsT], None] = lambda _: None,
    registry: CollectorRegistry | None = None,
) -> None:
    """Run a group until `stopping` is set; finishes the batch in hand, then leaves the group.

    Raises `StopRunning` with the exit code when the process must end for another reason. Any number of
    processes may run the same group. `committed` is `BatchTransaction`'s; `registry` serves further metrics of
    the process.
    """
    registry = registry or CollectorRegistry()
    metrics = RuntimeMetrics(registry, group.name)
    database = Database(settings.database_url.get_secret_value(), f"tellonce-{group.name}", stopping.is_set)
    admin = admin_client(settings)
    specs = [TopicSpec(name) for name in group.topics]
    horizon, payload_limit = database.patiently(lambda conn: _subscribe(conn, group))
    consumer = Consumer(consumer_config(settings, group.name))
    try:
        transaction = BatchTransaction(group, catalogue, horizon, payload_limit, committed)
        loop = Loop(consumer, admin, specs, group.name, transaction, database, metrics, stopping.is_set)
        server = telemetry.serve(
            settings.metrics_host, settings.metrics_port, registry, lambda: _health(loop, group.name)
        )
        try:
            _log.info("started", group=group.name, telemetry=f"{server.host}:{server.port}")
            _collect_rarely()
            loop.run()
        finally:
            server.close()
    finally:
        consumer.close()
        database.close()
        _log.info("stopped", group=group.name)


def _subscribe(conn: psycopg.Connection[Any], group: Group[StateT, DecisionsT]) -> tuple[timedelta, int]:
    """Check the schema's version, say what this group must decide, and learn the horizon and the payload's limit."""
    verify(conn)
    conn.execute(
        QUERIES["subscribe"], {"group": group.name, "topics": list(group.topics), "now": clock.now(conn)}
    )
    row = conn.execute(QUERIES["installation"]).fetchone()
    assert row is not None  # migrations write the installation's row
    horizon, payload_limit = row
    return horizon, payload_limit


def _collect_rarely() -> None:
    """A batch makes tens of thousands of tuples, none of them in a cycle; looking through them again and again for
    one took a tenth of the time. What there is by now stays for good.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


def _health(loop: Loop[StateT, DecisionsT], group: str) -> telemetry.Health:
    idle = time.monotonic() - loop.last_progress
    return telemetry.Health(
        ok=idle < STUCK_AFTER_S,
        detail={"group": group, "partitions": loop.assigned, "seconds_since_poll": round(idle, 1)},
    )
