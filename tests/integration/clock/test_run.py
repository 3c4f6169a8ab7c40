"""`tellonce run clock`: works, says how it is, survives bad weather, stops when told, need not be alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import httpx
import psycopg
import pytest
from pydantic import SecretStr

from connectors.postgres.migrate import SchemaVersionError
from connectors.settings import Settings
from connectors.telemetry import TelemetryServer
from producers.clock import time as clock_time
from producers.clock.reconcile import ReconcilerOptions
from producers.clock.run import ClockOptions, ClockProcess
from tests.integration.clock.conftest import Database

QUICK = ClockOptions(
    reconcile_every_s=0.05,
    upkeep_every_s=0.05,
    tick_s=0.02,
    backoff_s=0.05,
    reconciler=ReconcilerOptions(answer_within_s=0.5),
)


class Running:
    """A clock in a thread of this process."""

    def __init__(self, settings: Settings) -> None:
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._server: TelemetryServer | None = None
        self.process = ClockProcess(settings, stop=self._stop, options=QUICK)
        self._thread = threading.Thread(target=self.process.run, args=[self._at])
        self._thread.start()
        assert self._ready.wait(10)

    def _at(self, server: TelemetryServer) -> None:
        self._server = server
        self._ready.set()

    def get(self, path: str) -> httpx.Response:
        assert self._server is not None
        return httpx.get(f"http://{self._server.host}:{self._server.port}{path}", timeout=5)

    def metric(self, name: str) -> float:
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


@pytest.fixture
def start() -> Iterator[Callable[[str], Running]]:
    running: list[Running] = []

    def start(dsn: str) -> Running:
        settings = Settings(database_url=SecretStr(dsn), kafka_bootstrap="127.0.0.1:1")
        running.append(Running(settings))
        return running[-1]

    yield start
    for clock in running:
        clock.stop()


def test_it_works_and_says_so(database: Database, start: Callable[[str], Running]) -> None:
    owner = database.connect(database.owner_dsn)
    clock_time.move(owner, timedelta(hours=2))
    clock = start(database.consumer_dsn)
    until(lambda: clock.get("/health").is_success)
    until(lambda: clock.metric("tellonce_reconciler_rounds_total") > 0)
    assert clock.get("/health").json()["weather"] is None
    assert clock.metric("tellonce_partition_gaps") == 0
    assert clock.metric("tellonce_clock_offset_seconds") == pytest.approx(7200, abs=1)


def test_it_survives_its_connection_and_says_when_it_has_none(
    database: Database, start: Callable[[str], Running]
) -> None:
    clock = start(database.consumer_dsn)
    until(lambda: clock.get("/health").is_success)
    with psycopg.connect(database.admin_dsn, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = 'tellonce clock'"
        )
    rounds = clock.metric("tellonce_reconciler_rounds_total")
    until(lambda: clock.metric("tellonce_reconciler_rounds_total") > rounds + 1)
    assert clock.get("/health").is_success


def test_an_unreachable_database_is_told_and_stopping_works(start: Callable[[str], Running]) -> None:
    clock = start("host=127.0.0.1 port=1 dbname=tellonce user=x")
    until(lambda: "refused" in str(clock.get("/health").json()["weather"]))
    assert clock.get("/health").status_code == httpx.codes.SERVICE_UNAVAILABLE


def test_several_clocks_at_once(database: Database, start: Callable[[str], Running]) -> None:
    clocks = [start(database.consumer_dsn) for _ in range(3)]
    until(lambda: all(clock.metric("tellonce_reconciler_rounds_total") > 0 for clock in clocks))
    clocks[0].stop()
    rounds = clocks[1].metric("tellonce_reconciler_rounds_total")
    until(lambda: clocks[1].metric("tellonce_reconciler_rounds_total") > rounds)


def test_a_database_of_another_version_ends_it(database: Database) -> None:
    database.run(
        "DELETE FROM platform.schema_migration WHERE version = (SELECT max(version) FROM platform.schema_migration)"
    )
    settings = Settings(database_url=SecretStr(database.consumer_dsn), kafka_bootstrap="127.0.0.1:1")
    process = ClockProcess(settings, stop=threading.Event(), options=QUICK)
    with pytest.raises(SchemaVersionError, match="tellonce migrate"):
        process.run()
