"""Moves the one Clock: offset, rate, a given time. Reading it is `connectors.postgres.clock`.

Every change is one short transaction that locks the clock's row, so that two people moving it at once
make one move after the other and a change of pace never jumps. Holding and releasing a tenant is
`producers.tenants`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

from connectors.logging import get_logger
from connectors.postgres import sql
from connectors.postgres.clock import ClockMissingError
from producers.clock.signals import Action
from schemas.clock import ClockReading

_log = get_logger(__name__)
_queries = sql.load("producers.clock", "queries.sql")


def move(conn: Connection[Any], by: timedelta) -> ClockReading:
    """Move the clock on by `by` (negative: back); the pace stays. What becomes due fires at once."""
    return _change(conn, lambda reading, real: reading.moved(real, by))


def pace(conn: Connection[Any], rate: float) -> ClockReading:
    """From now on `rate` times as fast as real time; 0 stands still. The time shown does not jump."""
    return _change(conn, lambda reading, real: reading.paced(real, rate))


def show(conn: Connection[Any], at: datetime) -> ClockReading:
    """Set the clock to show `at` (aware) now; the pace stays."""
    return _change(conn, lambda reading, real: reading.showing(real, at))


def reset(conn: Connection[Any]) -> ClockReading:
    """Back to real time at its own pace."""
    return _change(conn, lambda _, real: ClockReading.real(real))


def _change(conn: Connection[Any], change: Callable[[ClockReading, datetime], ClockReading]) -> ClockReading:
    with conn.transaction():
        row = conn.execute(_queries["clock_for_update"]).fetchone()
        if row is None:
            raise ClockMissingError("platform.clock is empty; run `tellonce migrate`")
        real_at, clock_at, rate, real = row
        reading = change(ClockReading(real_at, clock_at, rate), real)
        conn.execute(
            _queries["set_clock"],
            {"real_at": reading.real_at, "clock_at": reading.clock_at, "rate": reading.rate},
        )
    _log.info(Action.TIME_SET, shows=reading.clock_at.isoformat(), rate=reading.rate)
    return reading
