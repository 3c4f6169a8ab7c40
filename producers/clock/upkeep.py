"""Upkeep of the day partitions: coming days exist well ahead, days behind the horizon go.

Days are real: what decides an event's day is the time inside its id, whatever the Clock shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from psycopg import Connection, DatabaseError
from psycopg.errors import LockNotAvailable

from connectors.logging import get_logger
from connectors.postgres import sql
from connectors.postgres.errors import Refusal
from producers.clock.signals import Action, ClockMetrics

_log = get_logger(__name__)
_queries = sql.load("producers.clock", "queries.sql")

DAYS_AHEAD = 8
"""Today and the coming seven: a clock may be down over a long weekend before a row lands in a default
partition.
"""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What one pass did and what is left to do."""

    made: int
    dropped: int
    gaps: tuple[date, ...]
    """Coming days without a partition: an alarm."""
    kept: tuple[date, ...]
    """Days behind the horizon that hold records a group has not decided: an alarm."""


def keep_up(conn: Connection[Any], metrics: ClockMetrics, days: int = DAYS_AHEAD) -> Upkeep:
    """Make what is missing, drop what is over, say what is left. Several at once are safe.

    On an autocommit connection: each day is a transaction of its own, whose locks wait a quarter of a
    second at most; what could not be locked is left for the next pass.
    """
    made = 0
    try:
        made = _one(conn, "ensure_partitions", {"days": days})
    except LockNotAvailable:
        _log.info(Action.PARTITION_BUSY)
    dropped = 0
    kept: list[date] = []
    for (day,) in conn.execute(_queries["expired_days"]).fetchall():
        try:
            _one(conn, "gather_day", {"day": day})
            dropped += _one(conn, "drop_day", {"day": day})
        except LockNotAvailable:
            _log.info(Action.PARTITION_BUSY, day=day.isoformat())
        except DatabaseError as error:
            if error.sqlstate == Refusal.DAY_WITHIN_HORIZON:
                continue  # a row of that day was recorded later, such as a long import's; the day goes when that may
            if error.sqlstate != Refusal.DAY_UNDECIDED:
                raise
            kept.append(day)
            _log.error(Action.PARTITION_KEPT, day=day.isoformat(), detail=str(error))
    gaps = tuple(day for (day,) in conn.execute(_queries["partition_gaps"], {"days": days}).fetchall())
    metrics.partition_gaps.set(len(gaps))
    metrics.partitions_kept.set(len(kept))
    if gaps:
        _log.error(Action.PARTITION_GAP, days=[day.isoformat() for day in gaps])
    if made or dropped:
        _log.info(Action.PARTITIONS, made=made, dropped=dropped)
    return Upkeep(made, dropped, gaps, tuple(kept))


def _one(conn: Connection[Any], name: str, values: dict[str, object]) -> int:
    row = conn.execute(_queries[name], values).fetchone()
    return int(row[0]) if row else 0
