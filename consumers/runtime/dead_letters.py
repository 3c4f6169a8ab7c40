"""Dead letters: looked at, sent again, or put away. Nothing is ever deleted.

Retrying has no write path of its own. The decision that says `dead_letter` is withdrawn and the outbox row is
sent again, in one transaction: the record streams once more, in commit order behind everything since, and is
decided as if it had come late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from connectors.postgres import clock
from connectors.postgres.sql import load

QUERIES = load("consumers.runtime", "dead_letters.sql")


class DeadLetterRefused(Exception):  # noqa: N818 it is an answer to a person
    """What was asked cannot be done to this dead letter; the message says why and what can."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a group could not decide. `headers` as name and text, `body` and `record_key` as they came."""

    dead_letter_id: int
    group_name: str
    topic: str
    partition: int
    offset: int
    tenant_id: str | None
    event_id: str | None
    event_type: str | None
    reason: str
    error: str | None
    state: str
    created_at: datetime
    closed_at: datetime | None
    closed_by: str | None
    note: str | None
    record_key: bytes | None
    headers: list[list[str | None]] | None
    body: bytes | None


def listed(
    conn: psycopg.Connection[Any],
    *,
    state: str | None = "open",
    group: str | None = None,
    tenant: str | None = None,
    reason: str | None = None,
    limit: int = 100,
) -> list[DeadLetter]:
    """The newest dead letters first, narrowed by what is given."""
    with conn.cursor(row_factory=class_row(DeadLetter)) as cursor:
        parameters = {"state": state, "group": group, "tenant": tenant, "reason": reason, "limit": limit}
        return cursor.execute(QUERIES["listed"], parameters).fetchall()


def shown(conn: psycopg.Connection[Any], dead_letter_id: int) -> DeadLetter:
    """One dead letter, whole. Raises `DeadLetterRefused` when there is none of this number."""
    with conn.cursor(row_factory=class_row(DeadLetter)) as cursor:
        found = cursor.execute(QUERIES["shown"], {"ids": [dead_letter_id]}).fetchone()
    if found is None:
        raise DeadLetterRefused(
            f"there is no dead letter {dead_letter_id}; `tellonce dead-letter list --all` shows which there are"
        )
    return found


def retry(conn: psycopg.Connection[Any], dead_letter_ids: Sequence[int], *, by: str) -> int:
    """Send these records again, all or none; returns how many.

    Raises `DeadLetterRefused` for one that is closed already or has no row in the outbox to send.
    """
    ids = list(dict.fromkeys(dead_letter_ids))
    with conn.transaction():
        for dead_letter_id in ids:
            _open(conn, dead_letter_id)
        present = {row[0] for row in conn.execute(QUERIES["sendable"], {"ids": ids})}
        for dead_letter_id in ids:
            if dead_letter_id not in present:
                raise DeadLetterRefused(
                    f"dead letter {dead_letter_id} has no row in the outbox: it was written to the topic by "
                    "somebody else, its transaction never committed, or its day is past the horizon. Append "
                    "the event again if it is a fact, and discard this."
                )
        parameters = {"ids": ids, "by": by, "now": clock.now(conn)}
        conn.execute(QUERIES["withdraw"], parameters)
        conn.execute(QUERIES["send_again"], parameters)
        conn.execute(QUERIES["close_retried"], parameters)
    return len(ids)


def discard(conn: psycopg.Connection[Any], dead_letter_ids: Sequence[int], *, by: str, note: str) -> int:
    """Put these away for good, with a note that says why; returns how many. Their decisions stay."""
    ids = list(dict.fromkeys(dead_letter_ids))
    with conn.transaction():
        for dead_letter_id in ids:
            _open(conn, dead_letter_id)
        conn.execute(QUERIES["close_discarded"], {"ids": ids, "by": by, "note": note, "now": clock.now(conn)})
    return len(ids)


def _open(conn: psycopg.Connection[Any], dead_letter_id: int) -> None:
    state = shown(conn, dead_letter_id).state
    if state != "open":
        raise DeadLetterRefused(f"dead letter {dead_letter_id} is {state} already; nothing was changed")
