"""The transaction as a group sees it: named statements, parameters only, row counts asserted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg import Cursor

from consumers.runtime.errors import RowCountMismatch


class Tx:
    """One open transaction. `now` is the Clock's time for everything written in it."""

    __slots__ = ("_cursor", "now")

    def __init__(self, cursor: Cursor[tuple[Any, ...]], now: datetime) -> None:
        self._cursor = cursor
        self.now = now

    def rows(self, statement: bytes, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        return self._cursor.execute(statement, parameters).fetchall()

    def run(self, statement: bytes, parameters: Mapping[str, object], *, expect: int) -> None:
        """Run a statement that must touch exactly `expect` rows.

        Raises `RowCountMismatch` otherwise: somebody changed what was loaded, so the batch rolls back and
        is decided again on fresh state.
        """
        found = self._cursor.execute(statement, parameters).rowcount
        if found != expect:
            raise RowCountMismatch(expect, found)

    def send(self, statement: bytes, parameters: Mapping[str, object]) -> None:
        """Run a statement whose row count says nothing, such as an INSERT that may find its row there."""
        self._cursor.execute(statement, parameters)
