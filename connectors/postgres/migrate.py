"""Migrations: numbered files in `schemas/sql/migrations`, applied once each, never edited afterwards.

Forward only. A file that was applied is history: its checksum is recorded, and a changed one is refused at
every start.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from psycopg import Connection, errors
from psycopg.pq import TransactionStatus

from connectors.postgres import sql

_LEDGER = sql.load("schemas.sql", "ledger.sql")
PARTITION_TRIES = 20
"""With the function's own 250 ms about 10 s: longer than any transaction of ours is open."""
PARTITION_PAUSE_S = 0.25
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class SchemaVersionError(Exception):
    """The database's schema is not the one this program was built for; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `schemas/sql/migrations`."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def known() -> tuple[Migration, ...]:
    """All migrations of this program in order; numbered 1, 2, 3 … without a gap."""
    found = []
    for file in files("schemas.sql.migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match:
            found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise SchemaVersionError(f"migrations are not numbered without a gap: {[m.version for m in found]}")
    return tuple(found)


def migrate(conn: Connection, products: Iterable[str] = ()) -> Sequence[Migration]:
    """Brings the schema up to date, makes the partitions of the coming days, registers `products`.

    Returns what it applied. `conn` belongs to the owner and is not inside a transaction: each migration is
    one of its own, under an advisory lock, so that several may run this at once. A failing one leaves the
    schema as the one before it left it. Raises `SchemaVersionError` when the database is ahead of
    this program or its history differs.
    """
    _refuse_open_transaction(conn)
    with conn.transaction():
        conn.execute(_LEDGER.lock)
        conn.execute(_LEDGER.create)
    done = []
    for migration in known():
        with conn.transaction():
            conn.execute(_LEDGER.lock)
            if len(_checked_history(conn)) >= migration.version:
                continue
            conn.execute(migration.text.encode())
            conn.execute(
                _LEDGER.record,
                {"version": migration.version, "name": migration.name, "checksum": migration.checksum},
            )
            done.append(migration)
    _ensure_partitions(conn)
    register_products(conn, products)
    return done


def verify(conn: Connection) -> None:
    """Raises `SchemaVersionError` unless the database has this program's migrations. Any role may ask."""
    history = _checked_history(conn)
    if len(history) < len(known()):
        raise SchemaVersionError(
            f"{_where(conn)} is at schema version {len(history)}, this program needs {len(known())}: "
            "run `tellonce migrate` as the owner"
        )


def register_products(conn: Connection, names: Iterable[str]) -> list[str]:
    """Makes the outbox accept events of these products; returns the new ones. Commits when idle."""
    with conn.transaction():
        rows = conn.execute(_LEDGER.register_products, {"products": sorted(set(names))}).fetchall()
    return sorted(row[0] for row in rows)


def _ensure_partitions(conn: Connection) -> None:
    """Makes the coming days; tries for a few seconds, because it never waits long for a lock itself."""
    for tries_left in reversed(range(PARTITION_TRIES)):
        try:
            with conn.transaction():
                conn.execute(_LEDGER.ensure_partitions)
        except errors.LockNotAvailable:
            if not tries_left:
                raise
            time.sleep(PARTITION_PAUSE_S)
        else:
            return


def _checked_history(conn: Connection) -> list[tuple[int, str, str]]:
    """What the database has applied, once it is clear that it is a beginning of our own list."""
    row = conn.execute(_LEDGER.exists).fetchone()
    history: list[tuple[int, str, str]] = conn.execute(_LEDGER.applied).fetchall() if row and row[0] else []
    if len(history) > len(known()):
        raise SchemaVersionError(
            f"{_where(conn)} is at schema version {len(history)}, this program knows {len(known())}: "
            "deploy a newer tellonce"
        )
    for (version, name, checksum), ours in zip(history, known(), strict=False):
        if (version, checksum) != (ours.version, ours.checksum):
            raise SchemaVersionError(
                f"{_where(conn)} applied {version:04}_{name} with another content than this program's "
                f"{ours.version:04}_{ours.name}: deploy the release that migrated it, or restore the file; "
                "a migration is never edited"
            )
    return history


def _where(conn: Connection) -> str:
    return f'database "{conn.info.dbname}" at {conn.info.host}:{conn.info.port}'


def _refuse_open_transaction(conn: Connection) -> None:
    if conn.info.transaction_status != TransactionStatus.IDLE:
        raise RuntimeError(
            "migrate needs a connection that is not inside a transaction: each migration is its own"
        )
