"""The replication slot, read from the database it belongs to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection

from connectors.postgres import sql

QUERIES: Final = sql.load("connectors.debezium", "queries.sql")
MARKS: Final = 4096
"""An hour and more of marks, one a second: beyond that the age is a lower bound."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot at one moment. Positions (LSNs) and sizes are bytes.

    `wal_status`: reserved → extended (more than max_wal_size is kept for it) → unreserved (the next
    checkpoint may remove what it needs) → lost (it did; the slot can never be read again).
    """

    active: bool
    wal_status: str | None
    confirmed: int | None
    """Everything before it is in Kafka, and Connect has stored that it is."""
    lag: int | None
    """Written to the WAL and not confirmed, by whomever: other tables' changes count too."""
    retained: int | None
    """WAL kept on disk for this slot."""
    safe: int | None
    """WAL that may still be written before the slot is in danger; None without a limit."""

    @property
    def is_lost(self) -> bool:
        return self.wal_status == "lost"

    @property
    def is_at_risk(self) -> bool:
        return self.wal_status == "unreserved"


def read_slot(conn: Connection[Any], name: str) -> Slot | None:
    """The slot of this name in the connection's database, or None when there is none."""
    row = conn.execute(QUERIES.slot, {"slot": name}).fetchone()
    if row is None:
        return None
    active, wal_status, *sizes = row
    return Slot(active, wal_status, *(None if size is None else int(size) for size in sizes))


@dataclass(frozen=True, slots=True)
class Stream:
    """What capture reads from. Whatever has committed lies before `position`."""

    position: int
    is_published: bool


def read_stream(conn: Connection[Any], publication: str) -> Stream:
    """The end of the WAL, and whether the publication has a table."""
    row = conn.execute(QUERIES.stream, {"publication": publication}).fetchone()
    assert row is not None  # a SELECT without FROM
    return Stream(int(row[0]), bool(row[1]))


class CaptureAge:
    """How old capture's knowledge is: everything that committed longer ago than this is in Kafka.

    Each second the end of the WAL is marked with the time; the age is that of the newest mark the slot has
    confirmed. Connect stores offsets, and so confirms, once a second: a healthy age is one to three seconds,
    whatever the latency of single records, and it does not depend on traffic, because heartbeats move the
    slot. Before the first mark is confirmed it is how long we have been waiting for that.
    """

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque(maxlen=MARKS)
        self._passed: float | None = None

    def mark(self, position: int, at: float) -> None:
        """`at` in seconds of any monotonic clock, the same as in `age`."""
        self._marks.append((position, at))

    def age(self, confirmed: int | None, now: float) -> float:
        """Seconds; 0 before anything was marked. Without a slot nothing is confirmed any more."""
        while confirmed is not None and self._marks and self._marks[0][0] <= confirmed:
            self._passed = self._marks.popleft()[1]
        since = self._passed if self._passed is not None else (self._marks[0][1] if self._marks else now)
        return max(0.0, now - since)
