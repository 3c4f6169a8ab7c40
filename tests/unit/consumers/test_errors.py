"""The exception type is the routing decision."""

from __future__ import annotations

import psycopg
import pytest
from confluent_kafka import KafkaError, KafkaException
from psycopg import errors

from consumers.runtime.errors import DecideError, Kind, RowCountMismatch, classify


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RowCountMismatch(1, 0), Kind.CONFLICT),
        (errors.UniqueViolation(), Kind.CONFLICT),
        (errors.SerializationFailure(), Kind.CONFLICT),
        (errors.DeadlockDetected(), Kind.CONFLICT),
        (errors.AdminShutdown(), Kind.WEATHER),
        (errors.DiskFull(), Kind.WEATHER),
        (errors.LockNotAvailable(), Kind.WEATHER),
        (errors.ConnectionFailure(), Kind.WEATHER),
        (psycopg.OperationalError("connection lost"), Kind.WEATHER),
        (psycopg.InterfaceError("the connection is closed"), Kind.WEATHER),
        (errors.InvalidTextRepresentation(), Kind.POISON),
        (errors.CheckViolation(), Kind.POISON),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL"), Kind.POISON),
        (DecideError("boom"), Kind.POISON),
        (errors.UndefinedTable(), Kind.FATAL),
        (errors.InsufficientPrivilege(), Kind.FATAL),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), Kind.WEATHER),
        (ZeroDivisionError(), Kind.FATAL),
    ],
)
def test_what_a_failure_means(error: Exception, kind: Kind) -> None:
    assert classify(error) is kind
