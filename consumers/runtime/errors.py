"""The exception type is the routing decision: decide again, wait out the weather, isolate poison, or stop.

CONFLICT  a unique violation, a row count that does not match, a serialization failure, a deadlock:
          roll back, decide again on fresh state; decisions depend on state alone, so it converges
WEATHER   SQLSTATE classes 08 40 53 55 57 58, a lost connection, a missing broker:
          back off, reconnect, never skip, never dead-letter
POISON    SQLSTATE classes 22 and 23, a refusal of our own rules (TO), an exception from decide:
          the second time, replayed one record per savepoint; what fails alone twice is dead-lettered
FATAL     everything else, such as a missing table, a refused permission, a bug in the loop:
          stop with a message; skipping would lose, trying again would not help
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto

import psycopg
from confluent_kafka import KafkaException

from connectors.postgres.errors import Fault, fault

EXIT_TEMPFAIL = 75
"""sysexits' EX_TEMPFAIL: what is needed is away; start again later."""
EXIT_CONFIG = 78
"""sysexits' EX_CONFIG: starting again will not help before somebody mends something."""

_OF_FAULT = {
    Fault.CONFLICT: "CONFLICT",
    Fault.WEATHER: "WEATHER",
    Fault.DATA: "POISON",
    Fault.REFUSED: "POISON",
    Fault.DEFECT: "FATAL",
}


class Kind(Enum):
    """What the loop does about a failure."""

    CONFLICT = auto()
    WEATHER = auto()
    POISON = auto()
    FATAL = auto()


class RowCountMismatch(Exception):  # noqa: N818 it is a signal between write and loop, not an error of anybody's
    """A statement touched another number of rows than the decision assumed."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"expected to touch {expected} rows, touched {found}")


class DecideError(Exception):
    """A decision raised; carries the cause. One that cannot be made is poison."""


class StopRunning(Exception):  # noqa: N818 a request to end the process
    """The process must end with `exit_code`; the message says what is wrong and how to mend it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def deciding(what: str) -> Iterator[None]:
    """Whatever is raised inside, the database's own failures aside, is a `DecideError`: poison, never the weather."""
    try:
        yield
    except (psycopg.Error, RowCountMismatch, DecideError):
        raise
    except Exception as error:
        raise DecideError(f"{what}: {type(error).__name__}: {error}") from error


def classify(error: BaseException) -> Kind:
    """What kind of failure this is."""
    match error:
        case RowCountMismatch():
            return Kind.CONFLICT
        case DecideError():
            return Kind.POISON
        case psycopg.DataError(sqlstate=None):  # the driver refused a value, such as a NUL in text
            return Kind.POISON
        case psycopg.Error():
            return Kind[_OF_FAULT[fault(error)]]
        case KafkaException():
            kafka_error = error.args[0]
            return Kind.FATAL if kafka_error.fatal() else Kind.WEATHER
        case _:
            return Kind.FATAL
