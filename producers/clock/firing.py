"""The loop that fires: works off what is due, then sleeps until something may be.

It sleeps on its own connection, on which Postgres tells it of nudges that fall due earlier, of time that was
moved and of tenants that run again (`0012_timers.sql`). While nothing is due and nothing is told, the database
hears nothing from it but one look a minute.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import Connection

from connectors.logging import get_logger
from connectors.postgres import migrate, pool
from producers.clock import timers
from producers.clock.signals import Action, ClockMetrics
from producers.clock.timers import Fired
from producers.clock.waking import Outlook
from producers.clock.weather import Weather

_log = get_logger(__name__)

STOP_NOTICED_S = 0.5
"""How soon a sleeper sees that it is asked to stop; it asks nobody, so it costs nothing."""
COUNTED = 10_000
"""More than so many waiting are not counted."""
TELL_AFTER = timedelta(minutes=1)
"""Longer than this no event is under way: capture or a group stands still, and somebody should know."""
TELL_EVERY_S = 60.0


@dataclass
class Firing:
    """Fires for one process. `run` blocks until `stop` is set."""

    dsn: str
    metrics: ClockMetrics
    stop: threading.Event
    weather: Weather
    _last_tenant: str = ""
    _any_wait: bool = True
    """Whether some may wait: others may have been left waiting by a clock that is gone."""
    _told_at: float = float("-inf")

    def run(self) -> None:
        """Work through all weather. Raises what is not weather, such as `SchemaVersionError`."""
        self.weather.through(self._connected)

    def _connected(self) -> None:
        with pool.connect(self.dsn, "tellonce timers", autocommit=True) as conn:
            migrate.verify(conn)
            conn.prepare_threshold = None  # a plan per statement: they are few, and tables grow from nothing
            timers.listen(conn)
            while not self.stop.is_set():
                ahead = self._work_off(conn)
                self.weather.clear()
                self._sleep(conn, ahead)

    def _work_off(self, conn: Connection[Any]) -> Outlook:
        """Fire until a transaction was not full; returns what comes next."""
        done = self._fire(conn)
        while done.full and not self.stop.is_set():
            done = self._fire(conn)
        self._count_waiting(conn)
        return timers.outlook(conn, idle=done.idle)

    def _fire(self, conn: Connection[Any]) -> Fired:
        done = timers.fire(conn, self._last_tenant)
        self._last_tenant = done.last_tenant
        for product, count in done.fired.items():
            self.metrics.timers_fired.labels(product).inc(count)
        for product, count in done.held_back.items():
            self.metrics.timers_held_back.labels(product).inc(count)
        if done.fired:
            self.metrics.timers_late.observe(done.latest_s)
            _log.debug(Action.TIMERS_FIRED, fired=done.fired.total(), latest_s=done.latest_s)
        self._any_wait = self._any_wait or bool(done.held_back)
        return done

    def _count_waiting(self, conn: Connection[Any]) -> None:
        if not self._any_wait:
            return
        held = timers.waiting(conn, COUNTED)
        self._any_wait = held.nudges > 0
        self.metrics.timers_waiting.set(held.nudges)
        self.metrics.timers_waiting_since.set(held.since.timestamp() if held.since else 0)
        if held.longest >= TELL_AFTER and time.monotonic() - self._told_at >= TELL_EVERY_S:
            self._told_at = time.monotonic()
            _log.warning(Action.TIMERS_WAIT, waiting=held.nudges, longest_s=held.longest.total_seconds())

    def _sleep(self, conn: Connection[Any], ahead: Outlook) -> None:
        """Until the next one is due, something is told that changes it, or stopped."""
        began = time.monotonic()
        while not self.stop.is_set():
            left = began + ahead.sleep_s() - time.monotonic()
            if left <= 0:
                return
            for told in conn.notifies(timeout=min(left, STOP_NOTICED_S), stop_after=1):
                changed = ahead.told(told.payload)
                if changed is None:
                    return
                ahead = changed
