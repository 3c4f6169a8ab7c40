"""Reads the one Clock.

Real time here is the database server's: processes on hosts that disagree still agree on it. Writers
(`producers/clock`) and readers (every consumer) share this; only reading lives here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from psycopg import Connection

from schemas.clock import ClockReading


class ClockMissingError(RuntimeError):
    """The installation has no clock row; `tellonce migrate` writes it."""


def read_at(conn: Connection[Any]) -> tuple[ClockReading, datetime]:
    """The clock as it is set, and the database's real time of this statement (not of its transaction)."""
    row = conn.execute(
        "SELECT real_at, clock_at, rate, clock_timestamp() FROM platform.clock", binary=True
    ).fetchone()
    if row is None:
        raise ClockMissingError("platform.clock is empty; run `tellonce migrate`")
    real_at, clock_at, rate, real = row
    return ClockReading(real_at, clock_at, rate), real.astimezone(UTC)


def read(conn: Connection[Any]) -> ClockReading:
    """The clock as it is set now."""
    return read_at(conn)[0]


def now(conn: Connection[Any]) -> datetime:
    """What the clock shows now, in UTC: the `:now` that a transaction's statements are given."""
    reading, real = read_at(conn)
    return reading.now(real)


def tenant_now(conn: Connection[Any], tenants: list[str]) -> dict[str, datetime]:
    """What the clock shows for each of these tenants, held ones included; unknown tenants are absent."""
    reading, real = read_at(conn)
    rows = conn.execute(
        "SELECT tenant_id, held_at FROM platform.tenant WHERE tenant_id = ANY(%s)", (tenants,), binary=True
    ).fetchall()
    return {tenant: reading.now_for(real, held_at) for tenant, held_at in rows}
