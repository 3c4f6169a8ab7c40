"""What becomes of a unit of work that failed and was rolled back: the verdicts of `errors`, carried out.

A batch of records and a round of deliveries are such units. Either is tried again until it goes through; what is poison
in it is found by taking it apart, one savepoint each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from consumers.runtime.database import Database
from consumers.runtime.errors import DecideError, Kind, RowCountMismatch, classify
from consumers.runtime.tx import Tx

CONFLICT_LIMIT = 100
"""Each conflict means that somebody else got further; so many in a row mean that a statement never will."""
POISON_LIMIT = 2
"""A failure that comes again is not a passing collision: the work is taken apart."""

FAILURES = (psycopg.Error, DecideError, RowCountMismatch)
"""What a unit of work may raise and be tried again after."""

_T = TypeVar("_T")


class Trials:
    """The tries of one unit of work. `retried` is told each failure's kind."""

    def __init__(self, database: Database, retried: Callable[[str], None]) -> None:
        self._database = database
        self._retried = retried
        self._conflicts = self._poisoned = 0

    @property
    def singly(self) -> bool:
        """Whether the next try takes the work apart."""
        return self._poisoned >= POISON_LIMIT

    def failed(self, error: Exception) -> None:
        """Returns when it may be tried again; raises `error` when that would not help, and `StopRunning` when the
        database stays away.
        """
        kind = classify(error)
        self._retried(kind.name.lower())
        match kind:
            case Kind.WEATHER:
                self._database.close()
                self._database.weather.wait(error)
            case Kind.POISON:
                self._poisoned += 1
            case Kind.CONFLICT:
                self._conflicts += 1
                if self._conflicts > CONFLICT_LIMIT:
                    raise error
            case Kind.FATAL:
                raise error

    def succeeded(self) -> None:
        """It went through; what comes next is another unit."""
        self._conflicts = self._poisoned = 0
        self._database.weather.over()


@dataclass(frozen=True, slots=True)
class Poison:
    """What failed alone, twice; nothing of it has been written."""

    failure: Exception


def alone(conn: psycopg.Connection[Any], tx: Tx, work: Callable[[], _T]) -> _T | Poison:
    """Do `work` behind a savepoint of its own; `tx` must not be pipelined. A second try tells a passing collision
    from poison; whatever else fails is raised, and fails the whole.
    """
    failure: Exception | None = None
    for _ in range(POISON_LIMIT):
        try:
            with conn.transaction():
                done = work()
                tx.settle()
        except (psycopg.Error, DecideError) as error:
            if classify(error) is not Kind.POISON:
                raise
            failure = error
        else:
            return done
    assert failure is not None
    return Poison(failure)
