"""What the reconciler reads from and writes to the database: each method one statement or one transaction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection

from connectors.debezium.rebuild import owe_full_sweep
from connectors.postgres import clock, sql
from producers.clock.decide import Candidate, Round, Slot, State
from schemas.states import DeadReason

_queries = sql.load("producers.clock", "queries.sql")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Noted:
    """The position in the WAL that capture has to pass, and when it was taken (real time)."""

    lsn: int
    at: datetime


class Books:
    """On one autocommit connection: between its statements no transaction is open, so waiting holds
    nothing back.
    """

    def __init__(self, conn: Connection[Any]) -> None:
        if not conn.autocommit:
            raise ValueError("the reconciler waits between its statements; give it an autocommit connection")
        self._conn = conn

    @contextmanager
    def lock(self, task: str) -> Iterator[bool]:
        """Whether this session is the one that does `task`; held until the block ends or the session does."""
        row = self._conn.execute(_queries["try_lock"], {"task": task}).fetchone()
        mine = bool(row and row[0])
        try:
            yield mine
        finally:
            if mine and not self._conn.closed and not self._conn.broken:
                self._conn.execute(_queries["unlock"], {"task": task})

    def owed_topics(self) -> dict[str, list[str]]:
        """The topics that each subscribed group must decide."""
        return dict(self._conn.execute(_queries["owed_topics"]).fetchall())

    def undecided(
        self, owed: Mapping[str, Sequence[str]], since: datetime | None, per_group: int
    ) -> list[Candidate]:
        """The oldest rows that a group must decide and has not, at most `per_group` of each, so that a
        dead group does not hide the others; `since` bounds the time inside their ids.
        """
        found: list[Candidate] = []
        for group, topics in owed.items():
            rows = self._conn.execute(
                _queries["undecided"],
                {"group": group, "topics": list(topics), "since": since or EPOCH, "limit": per_group},
            )
            found += [
                Candidate(event_id, tenant_id, group, topic, position, resends)
                for event_id, tenant_id, topic, position, resends in rows
            ]
        return found

    def note(self) -> Noted:
        """Take the position, after the candidates were read."""
        row = self._conn.execute(_queries["note"]).fetchone()
        assert row is not None  # a SELECT without FROM
        return Noted(int(row[0]), row[1])

    def slot(self, name: str) -> Slot | None:
        """The replication slot as it stands, or None when there is none in this database."""
        row = self._conn.execute(_queries["slot"], {"slot": name}).fetchone()
        if row is None:
            return None
        confirmed, wal_status, txns = row
        return Slot(None if confirmed is None else int(confirmed), wal_status, int(txns))

    def progress(self, groups: Sequence[str], topic_ids: Sequence[str]) -> dict[tuple[str, str, int], int]:
        """Next offsets by (group, topic id, partition)."""
        rows = self._conn.execute(
            _queries["progress"], {"groups": list(groups), "topic_ids": list(topic_ids)}
        ).fetchall()
        return {(group, topic_id, partition): offset for group, topic_id, partition, offset in rows}

    def still_undecided(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of the candidates that lack their decision to this moment, read in a new snapshot."""
        if not candidates:
            return []
        rows = self._conn.execute(
            _queries["still_undecided"],
            _columns(candidates) | {"positions": [row.position for row in candidates]},
        ).fetchall()
        return [candidates[place - 1] for (place,) in rows]

    def resend(self, lost: Sequence[Candidate], real: datetime) -> int:
        """Send each lost row again, once whatever the number of groups that lack it, in its order; count it.

        One transaction: a row is never sent without being counted. Returns how many rows were sent.
        """
        if not lost:
            return 0
        rows = [next(of_one) for _, of_one in itertools.groupby(lost, lambda row: row.position)]
        with self._conn.transaction():
            self._conn.execute(_queries["count_resends"], _columns(lost) | {"real": real})
            self._conn.execute(
                _queries["resend"],
                {
                    "event_ids": [row.event_id for row in rows],
                    "tenant_ids": [row.tenant_id for row in rows],
                },
            )
        return len(rows)

    def give_up(self, lost: Sequence[Candidate]) -> None:
        """Dead-letter each row for the group that lacks it, with the decision that says so, in one
        transaction.
        """
        if not lost:
            return
        with self._conn.transaction():
            values = _columns(lost) | {
                "now": clock.now(self._conn),
                "reason": DeadReason.LOST,
                "error": f"lost {lost[0].resends + 1} times; sending it again does not mend what loses it",
            }
            self._conn.execute(_queries["bury"], values)
            self._conn.execute(_queries["decide_dead"], values)

    def forget_healed(self) -> int:
        """Drop the counts of rows that were decided meanwhile; returns how many healed."""
        return self._conn.execute(_queries["forget_healed"]).rowcount

    def state(self) -> State:
        """What the rounds before left."""
        row = self._conn.execute(_queries["state"]).fetchone()
        return State(*row) if row else State()

    def save(self, done: Round, *, slot_txns: int | None, owes_full: bool) -> None:
        """Keep how the round ended. A full sweep stays owed until one ends with a full verdict."""
        self._conn.execute(
            _queries["save_state"],
            {
                "slot_txns": slot_txns,
                "owes_full": owes_full,
                "noted_at": done.noted_at,
                "undecided": done.undecided,
                "lost": done.lost,
                "unanswered": sorted(done.unanswered),
                "answered": done.is_full_verdict,
                "sweep": done.sweep,
            },
        )

    def owe_full(self) -> None:
        """Ask for a sweep of every partition: the next round of whichever clock does it."""
        owe_full_sweep(self._conn)


def _columns(rows: Sequence[Candidate]) -> dict[str, object]:
    return {
        "event_ids": [row.event_id for row in rows],
        "tenant_ids": [row.tenant_id for row in rows],
        "groups": [row.group for row in rows],
    }
