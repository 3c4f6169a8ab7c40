"""A step of the supervisor with a worker that fails it: it says so, does nothing rash, and goes on."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
from prometheus_client import CollectorRegistry
from psycopg import Connection

from connectors.debezium.client import (
    ConnectAway,
    ConnectBusy,
    ConnectClient,
    ConnectError,
    ConnectorStatus,
    ConnectRefused,
    State,
    TaskStatus,
    UnknownConnector,
)
from connectors.debezium.diagnose import Alarm, Diagnosis, Remedy
from connectors.debezium.signals import CaptureMetrics
from connectors.debezium.slot import QUERIES
from connectors.debezium.supervise import Supervisor

RUNNING = ConnectorStatus("tellonce", State.RUNNING, (TaskStatus(0, State.RUNNING),))


class Worker:
    """A worker that answers a status with the next of `answers`, or raises it."""

    def __init__(self, *answers: ConnectorStatus | ConnectError) -> None:
        self._answers = list(answers)

    def status(self, _name: str) -> ConnectorStatus:
        answer = self._answers.pop(0)
        if isinstance(answer, ConnectError):
            raise answer
        return answer


class Database:
    """A database with a slot in good health."""

    rows: ClassVar[dict[bytes, tuple[object, ...]]] = {
        QUERIES.slot: (True, "reserved", 100, 0, 0, None),
        QUERIES.stream: (100, True),
    }

    def execute(self, query: bytes, _parameters: object = None) -> Database:
        self._row = self.rows[query]
        return self

    def fetchone(self) -> tuple[object, ...]:
        return self._row


def supervisor(*answers: ConnectorStatus | ConnectError) -> Supervisor:
    def none_needed() -> Connection[Any]:
        raise AssertionError("nothing is to be dropped")

    return Supervisor(
        cast("ConnectClient", Worker(*answers)),
        CaptureMetrics(CollectorRegistry()),
        replication=none_needed,
    )


@pytest.mark.parametrize(
    "failure",
    [
        ConnectAway("does not answer"),
        ConnectBusy("rebalancing"),
        ConnectRefused("answered 500: Request timed out", 500),
        ConnectRefused("answered 401: Unauthorized", 401),
    ],
)
def test_a_worker_that_fails_us_is_an_alarm_and_not_the_end(failure: ConnectError) -> None:
    watched = supervisor(failure, RUNNING)
    conn = cast("Connection[Any]", Database())
    told = watched.step(conn)
    assert told == Diagnosis(frozenset({Alarm.CONNECT_AWAY}), Remedy.NOTHING, str(failure))
    assert watched.step(conn).alarms == frozenset()


def test_a_connector_that_was_never_applied_is_left_to_people() -> None:
    watched = supervisor(UnknownConnector("no such connector", 404))
    told = watched.step(cast("Connection[Any]", Database()))
    assert told == Diagnosis(frozenset({Alarm.CONNECTOR_MISSING}), Remedy.NOTHING)
