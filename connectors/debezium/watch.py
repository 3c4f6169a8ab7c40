"""`tellonce run capture`: the loop around the supervisor, with health and metrics.

Connect does not restart a failed task, and Debezium does not make a lost stream whole; this process does, and
says so. Several may run: whoever comes second finds nothing left to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from psycopg import Connection, Error

from connectors.debezium.client import ConnectClient
from connectors.debezium.rebuild import RebuildError
from connectors.debezium.signals import Action, CaptureMetrics
from connectors.debezium.supervise import Supervisor, Watched
from connectors.logging import get_logger
from connectors.postgres import migrate, pool
from connectors.settings import Settings
from connectors.telemetry import Health, TelemetryServer, serve

_log = get_logger(__name__)

NAME = "tellonce capture"


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """Real seconds."""

    every_s: float = 1.0
    """How soon trouble is seen; a look costs two statements and one request."""
    reconnect_s: float = 1.0
    """Between attempts while the database is away; doubles up to `reconnect_most_s`."""
    reconnect_most_s: float = 15.0
    watched: Watched = field(default_factory=Watched)


class CaptureProcess:
    """One supervisor. `run` blocks until `stop` is set; the telemetry server answers meanwhile."""

    def __init__(
        self, settings: Settings, *, stop: threading.Event, options: CaptureOptions | None = None
    ) -> None:
        """Raises ConnectError when the settings lack Connect's address."""
        self._settings = settings
        self._stop = stop
        self._options = options or CaptureOptions()
        self._registry = CollectorRegistry()
        self._connect = ConnectClient(settings.connect_url)
        self._supervisor = Supervisor(
            self._connect,
            CaptureMetrics(self._registry),
            replication=self._replication,
            watched=self._options.watched,
        )
        self._weather: str | None = "not connected yet"

    def run(self, ready: Callable[[TelemetryServer], None] = lambda _: None) -> None:
        """Work until stopped; a remedy under way is finished. Raises `SchemaVersionError`."""
        server = serve(self._settings.metrics_host, self._settings.metrics_port, self._registry, self.health)
        try:
            _log.info(Action.STARTED, host=server.host, port=server.port, connect=self._connect.url)
            ready(server)
            self._through_all_weather()
        finally:
            server.close()
            self._connect.close()
            _log.info(Action.STOPPED)

    def health(self) -> Health:
        """Healthy while it can see the database: restarting the supervisor mends nothing else."""
        return Health(
            ok=self._weather is None,
            detail={
                "process": "capture",
                "weather": self._weather,
                "alarms": sorted(self._supervisor.alarms),
            },
        )

    def _through_all_weather(self) -> None:
        pause = self._options.reconnect_s
        while not self._stop.is_set():
            try:
                dsn = self._settings.database_url.get_secret_value()
                with pool.connect(dsn, NAME, autocommit=True) as conn:
                    migrate.verify(conn)
                    pause = self._options.reconnect_s
                    self._watch(conn)
            except Error as error:
                self._weather = str(error).strip()
                self._supervisor.database_away(self._weather)
                self._stop.wait(pause)
                pause = min(pause * 2, self._options.reconnect_most_s)

    def _watch(self, conn: Connection[Any]) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self._supervisor.step(conn)
            self._weather = None
            self._stop.wait(max(0.0, began + self._options.every_s - time.monotonic()))

    def _replication(self) -> Connection[Any]:
        dsn = self._settings.connect_database_url.get_secret_value()
        if not dsn:
            raise RebuildError(
                "the slot's WAL is lost, and dropping it takes a login that may replicate:"
                " set TELLONCE_CONNECT_DATABASE_URL, or drop it as a superuser"
            )
        return pool.connect(dsn, NAME, autocommit=True)
