"""Connections: one place for the session's name, time zone and limits."""

from __future__ import annotations

from typing import Any

from psycopg import Connection, ProgrammingError, conninfo
from psycopg_pool import ConnectionPool

CONNECT_TIMEOUT_S = 5
"""A database that does not answer within this is away; whoever asked backs off and tries again."""
KEEPALIVE_S = 10
"""Idle time before probing a silent peer, so that a vanished host is noticed within about 30 s."""
TCP_USER_TIMEOUT_MS = 30_000
"""Unacknowledged data this old ends the connection: the runtime treats 30 s without a database as its end."""
STATEMENT_TIMEOUT_MS = 30_000
"""A batch's statements take milliseconds; one that takes this long waits for something that will not come."""
LOCK_TIMEOUT_MS = 10_000
"""Locks are held for one batch; longer than this is a stuck owner: roll back, back off, decide again."""
IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000
"""A transaction left open holds back vacuum for everybody; a process under SIGSTOP loses its session."""


class InvalidAddressError(ProgrammingError):
    """What should say where a database is does not; the message never shows it, for it may hold a password."""


def parse(dsn: str) -> dict[str, Any]:
    """The parts of a libpq address or connection string, those it names. Raises `InvalidAddressError`."""
    try:
        return conninfo.conninfo_to_dict(dsn)
    except ProgrammingError:  # libpq quotes what it could not read
        raise InvalidAddressError(
            "neither postgresql://user:password@host:port/dbname nor key=value pairs"
            " (in an address, special characters of a password are percent-encoded)"
        ) from None


def session(
    dsn: str,
    name: str,
    *,
    statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
    lock_timeout_ms: int = LOCK_TIMEOUT_MS,
    idle_in_transaction_timeout_ms: int = IDLE_IN_TRANSACTION_TIMEOUT_MS,
) -> str:
    """`dsn` with our limits and `name` as application_name; 0 is no limit. What the DSN sets wins."""
    given = parse(dsn)
    options = (
        f"-c timezone=UTC -c statement_timeout={statement_timeout_ms} -c lock_timeout={lock_timeout_ms}"
        f" -c idle_in_transaction_session_timeout={idle_in_transaction_timeout_ms}"
        f" {given.pop('options', None) or ''}"
    )
    ours: dict[str, Any] = {
        "application_name": name,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives_idle": KEEPALIVE_S,
        "keepalives_interval": KEEPALIVE_S,
        "keepalives_count": 2,
        "tcp_user_timeout": TCP_USER_TIMEOUT_MS,
    }
    return conninfo.make_conninfo(**{**ours, **given, "options": options.strip()})


def connect(dsn: str, name: str, *, autocommit: bool = False, **limits: int) -> Connection:
    """One connection with our limits; `limits` are those of `session`."""
    return Connection.connect(session(dsn, name, **limits), autocommit=autocommit)


def open_pool(
    dsn: str, *, name: str, min_size: int = 1, max_size: int = 4, timeout_s: float = 10.0, **limits: int
) -> ConnectionPool:
    """An open pool; it closes with its `with` block.

    Connections are checked when handed out, so that a restarted database costs its users nothing; waiting
    longer than `timeout_s` for one raises `psycopg_pool.PoolTimeout`.

    Does not wait for the database: a process may start before it.
    """
    return ConnectionPool(
        session(dsn, name, **limits),
        min_size=min_size,
        max_size=max_size,
        timeout=timeout_s,
        name=name,
        check=ConnectionPool.check_connection,
        open=True,
    )


def describe(dsn: str) -> str:
    """Where a DSN leads, for logs and messages: never its password."""
    given = parse(dsn)
    shown = ("user", "host", "port", "dbname")
    return " ".join(f"{key}={given[key]}" for key in shown if given.get(key) is not None) or "(environment)"
