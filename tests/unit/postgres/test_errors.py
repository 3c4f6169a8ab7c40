"""What a database error means, and our own refusals by name."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import errors

from connectors.postgres import catalog
from connectors.postgres.errors import Fault, Refusal, fault, refusal


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.SerializationFailure(), Fault.CONFLICT),
        (errors.DeadlockDetected(), Fault.CONFLICT),
        (errors.UniqueViolation(), Fault.CONFLICT),
        (errors.TransactionRollback(), Fault.WEATHER),
        (errors.ConnectionFailure(), Fault.WEATHER),
        (errors.TooManyConnections(), Fault.WEATHER),
        (errors.LockNotAvailable(), Fault.WEATHER),
        (errors.AdminShutdown(), Fault.WEATHER),
        (errors.QueryCanceled(), Fault.WEATHER),
        (errors.IoError(), Fault.WEATHER),
        (errors.IdleInTransactionSessionTimeout(), Fault.WEATHER),
        (errors.TransactionTimeout(), Fault.WEATHER),
        (errors.ReadOnlySqlTransaction(), Fault.DEFECT),
        (psycopg.OperationalError("server closed the connection unexpectedly"), Fault.WEATHER),
        (psycopg.InterfaceError("the connection is closed"), Fault.WEATHER),
        (errors.NumericValueOutOfRange(), Fault.DATA),
        (errors.CheckViolation(), Fault.DATA),
        (errors.UndefinedTable(), Fault.DEFECT),
        (errors.InsufficientPrivilege(), Fault.DEFECT),
        (psycopg.ProgrammingError("no such parameter"), Fault.DEFECT),
    ],
)
def test_fault_by_sqlstate(error: psycopg.Error, expected: Fault) -> None:
    assert fault(error) is expected
    assert refusal(error) is None


def test_a_refusal_is_neither_poison_nor_weather() -> None:
    error = psycopg.DatabaseError()
    error.sqlstate = "TO008"
    assert fault(error) is Fault.REFUSED
    assert refusal(error) is Refusal.EVENT_CONFLICT


def test_every_refusal_of_the_migrations_has_a_name_and_every_name_is_used() -> None:
    used = set(re.findall(r"'(TO\d{3})'", catalog.ddl()))
    assert used == {str(reason) for reason in Refusal}
