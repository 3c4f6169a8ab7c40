"""The transaction as a group sees it: named statements, parameters only, row counts asserted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import Connection, Cursor, Pipeline

from consumers.runtime.errors import RowCountMismatch


class Answer:
    """The rows of a statement that has been sent; asking for them waits."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    def rows(self) -> list[tuple[Any, ...]]:
        """All of them. To be called once."""
        return self._cursor.fetchall()


class Tx:
    """One open transaction. `now` is the Clock's time for everything written in it.

    With a `pipeline` (the connection's) statements are sent without waiting for the one before, so that the
    next one's parameters are prepared while Postgres works; it still runs them in order, each seeing what
    the one before did.
    """

    __slots__ = ("_conn", "_counts", "_pipeline", "now")

    def __init__(self, conn: Connection[Any], now: datetime, pipeline: Pipeline | None = None) -> None:
        self._conn = conn
        self._pipeline = pipeline
        self._counts: list[tuple[Cursor[tuple[Any, ...]], int]] = []
        self.now = now

    def ask(self, statement: bytes, parameters: Mapping[str, object]) -> Answer:
        """Send a statement whose rows are wanted later."""
        return Answer(self._send(statement, parameters))

    def rows(self, statement: bytes, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        return self.ask(statement, parameters).rows()

    def run(self, statement: bytes, parameters: Mapping[str, object], *, expect: int) -> None:
        """Send a statement that must touch exactly `expect` rows; `settle` asserts that it did."""
        self._counts.append((self._send(statement, parameters), expect))

    def send(self, statement: bytes, parameters: Mapping[str, object]) -> None:
        """Send a statement whose row count says nothing, such as an INSERT that may find its row there."""
        self._send(statement, parameters)

    def settle(self) -> None:
        """Wait for what was sent, and assert the row counts.

        Raises `RowCountMismatch`: somebody changed what was loaded, so the batch rolls back and is decided
        again on fresh state. Nothing may be committed before this.
        """
        if self._pipeline is not None:
            self._pipeline.sync()
        counts, self._counts = self._counts, []
        for cursor, expected in counts:
            if cursor.rowcount != expected:
                raise RowCountMismatch(expected, cursor.rowcount)

    def _send(self, statement: bytes, parameters: Mapping[str, object]) -> Cursor[tuple[Any, ...]]:
        return self._conn.cursor(binary=True).execute(statement, parameters)
