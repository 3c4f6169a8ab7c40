"""The process's one connection to its database, and how it comes back after the weather."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from connectors.logging import get_logger
from connectors.postgres.pool import connect, describe, parse
from consumers.runtime.errors import EXIT_TEMPFAIL, Kind, StopRunning, classify

AWAY_LIMIT_S = 30.0
"""A restart of the database takes seconds. Longer than this, end with 75 and let whoever supervises us wait:
the broker gives our partitions to a process that may have a database."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

# Every hot statement is a batch of keys against an index. A plan made while a table was small or empty must
# not scan it once it is large, and planning a partitioned join anew for each batch costs more than running it.
# Remembering look-ups (memoize, materialize) is for keys that repeat; ours never do.
_PLANS = "-c plan_cache_mode=force_generic_plan -c jit=off " + " ".join(
    f"-c enable_{path}=off"
    for path in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "material", "memoize")
)

_log = get_logger(__name__)
_T = TypeVar("_T")


class Weather:
    """Backing off: pauses that double up to a second, until it has lasted `AWAY_LIMIT_S`."""

    def __init__(self, what: str, stopping: Callable[[], bool]) -> None:
        self._what = what
        self._stopping = stopping
        self._since: float | None = None
        self._pause = FIRST_PAUSE_S

    def wait(self, error: BaseException) -> None:
        """Pause after a failure. Raises `StopRunning` with 75 when it has lasted too long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            _log.warning("weather", detail=f"{self._what}: {_first_line(error)}")
        if now - self._since > AWAY_LIMIT_S:
            raise StopRunning(
                f"{self._what} has been away for {AWAY_LIMIT_S:.0f} s: {_first_line(error)}. Nothing is lost; "
                "start again when it answers.",
                EXIT_TEMPFAIL,
            )
        if self._stopping():
            raise StopRunning(f"stopped while {self._what} was away", 0)
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)

    def over(self) -> None:
        """It worked again."""
        if self._since is not None:
            _log.info("weather_over", detail=f"{self._what} after {time.monotonic() - self._since:.1f} s")
        self._since, self._pause = None, FIRST_PAUSE_S


class Database:
    """A connection that is opened when needed and thrown away when it broke. Not thread-safe."""

    def __init__(self, dsn: str, name: str, stopping: Callable[[], bool] = lambda: False) -> None:
        self._dsn = dsn
        self._name = name
        self._conn: psycopg.Connection[Any] | None = None
        self.weather = Weather(f"the database ({describe(dsn)})", stopping)

    def connection(self) -> psycopg.Connection[Any]:
        """The open connection; opens one if there is none. Raises psycopg.OperationalError when it is away."""
        if self._conn is None or self._conn.closed or self._conn.broken:
            self.close()
            given = parse(self._dsn).get("options") or ""
            dsn = psycopg.conninfo.make_conninfo(self._dsn, options=f"{_PLANS} {given}".strip())
            self._conn = connect(dsn, self._name, autocommit=True)
            self._conn.prepare_threshold = 1
        return self._conn

    def patiently(self, work: Callable[[psycopg.Connection[Any]], _T]) -> _T:
        """Do `work`, waiting out the weather; for what is safe to do again, such as assignment."""
        while True:
            try:
                result = work(self.connection())
            except psycopg.Error as error:
                if classify(error) not in (Kind.WEATHER, Kind.CONFLICT):
                    raise
                self.close()
                self.weather.wait(error)
            else:
                self.weather.over()
                return result

    def close(self) -> None:
        """Drop the connection; the next use opens another."""
        if self._conn is not None:
            self._conn.close()
            self._conn = None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
