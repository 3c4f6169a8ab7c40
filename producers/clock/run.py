"""`tellonce run clock`: the loop around the reconciler and the upkeep of partitions, and beside it the one that fires.

Any number of clocks may run. All of them fire, each what no other has locked; what only one may do at a time is
done under an advisory lock, so for that a second clock is a standby that needs no election. Both loops survive the
database and the broker being away: the process says so in `/health`, backs off, and goes on. They are apart, in
threads with a connection each, because firing needs no broker and must not wait for the reconciler's answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry
from psycopg import Connection

from connectors.kafka.clients import admin_client
from connectors.kafka.offsets import end_offsets
from connectors.logging import get_logger
from connectors.postgres import clock, migrate, pool
from connectors.settings import Settings
from connectors.telemetry import Health, TelemetryServer, serve
from producers.clock.books import Books
from producers.clock.decide import Round
from producers.clock.firing import Firing
from producers.clock.reconcile import Reconciler, ReconcilerOptions
from producers.clock.signals import Action, ClockMetrics
from producers.clock.upkeep import keep_up
from producers.clock.weather import Weather

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClockOptions:
    """How often the clock does what; real seconds, each with its reason."""

    reconcile_every_s: float = 15.0
    """How soon a loss is noticed, on top of the seconds that capture takes to answer."""
    upkeep_every_s: float = 600.0
    """Partitions exist a week ahead; ten minutes only bound how long a gap alarm outlives its mending."""
    tick_s: float = 1.0
    """How often the loop looks whether something is due."""
    backoff_s: float = 1.0
    """First pause in bad weather."""
    statement_timeout_ms: int = 600_000
    """A full sweep reads the horizon's outbox once; no other statement of the clock takes seconds."""
    reconciler: ReconcilerOptions = field(default_factory=ReconcilerOptions)


class ClockProcess:
    """One clock. `run` blocks until `stop` is set; the telemetry server answers meanwhile."""

    def __init__(
        self, settings: Settings, *, stop: threading.Event, options: ClockOptions | None = None
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._options = options or ClockOptions()
        self._registry = CollectorRegistry()
        self._metrics = ClockMetrics(self._registry)
        self._weather = Weather("reconciler", stop, self._options.backoff_s)
        self._firing = Firing(
            settings.database_url.get_secret_value(),
            self._metrics,
            stop,
            Weather("timers", stop, self._options.backoff_s),
        )
        self._last_round: Round | None = None

    def run(self, ready: Callable[[TelemetryServer], None] = lambda _: None) -> None:
        """Work until stopped; a round under way is given up at its next wait, a transaction is finished.

        Raises `SchemaVersionError` when the database is not the one this program was built for.
        """
        server = serve(self._settings.metrics_host, self._settings.metrics_port, self._registry, self.health)
        try:
            _log.info(Action.STARTED, host=server.host, port=server.port)
            ready(server)
            self._both()
        finally:
            server.close()
            _log.info(Action.STOPPED)

    def health(self) -> Health:
        """Healthy while database and broker answer; what the last round found is told beside it."""
        done = self._last_round
        weather = self._weather.bad or self._firing.weather.bad
        return Health(
            ok=weather is None,
            detail={
                "process": "clock",
                "weather": weather,
                "last_round": done and {"end": done.end, "sweep": done.sweep, "noted_at": done.noted_at},
            },
        )

    def _both(self) -> None:
        """The reconciler here, firing beside it; when one fails, the other is stopped and the failure raised."""
        with ThreadPoolExecutor(1, "timers") as beside:
            firing = beside.submit(self._firing.run)
            firing.add_done_callback(lambda _: self._stop.set())
            try:
                admin = admin_client(self._settings, client_id="tellonce-clock")
                self._weather.through(partial(self._connected, admin))
            finally:
                self._stop.set()
        firing.result()

    def _connected(self, admin: AdminClient) -> None:
        with pool.connect(
            self._settings.database_url.get_secret_value(),
            "tellonce clock",
            autocommit=True,
            statement_timeout_ms=self._options.statement_timeout_ms,
        ) as conn:
            migrate.verify(conn)
            self._work(conn, admin)

    def _work(self, conn: Connection[Any], admin: AdminClient) -> None:
        reconciler = Reconciler(
            Books(conn),
            partial(end_offsets, admin),
            self._metrics,
            options=self._options.reconciler,
            stop=self._stop,
        )
        upkeep_due = reconcile_due = time.monotonic()
        while not self._stop.is_set():
            reading, real = clock.read_at(conn)
            self._metrics.offset.set((reading.now(real) - real).total_seconds())
            self._metrics.rate.set(reading.rate)
            if time.monotonic() >= upkeep_due:
                keep_up(conn, self._metrics)
                upkeep_due = time.monotonic() + self._options.upkeep_every_s
            if time.monotonic() >= reconcile_due:
                self._last_round = reconciler.round() or self._last_round
                reconcile_due = time.monotonic() + self._options.reconcile_every_s
            self._weather.clear()
            self._stop.wait(self._options.tick_s)
