"""Every error that a command may meet: its exit code, and a message that says what, where and how to mend."""

from __future__ import annotations

import errno
from pathlib import Path

import httpx
import psycopg
import pytest
from confluent_kafka import KafkaError, KafkaException
from psycopg import errors

from connectors.debezium.client import ConnectAway, ConnectBusy, ConnectError, ConnectRefused
from connectors.kafka.topics import PartitionCountChanged
from connectors.postgres.migrate import SchemaVersionError
from connectors.registry import InvalidProduct
from connectors.settings import Settings
from consumers.delivery.operate import DeliveryRefused
from consumers.runtime.dead_letters import DeadLetterRefused
from consumers.runtime.errors import EXIT_TEMPFAIL, StopRunning
from deploy.cli.exits import Exit
from deploy.cli.failures import DatabaseAway, NotConfigured, explain
from deploy.demo.processes import ProcessEndedError
from deploy.local.errors import StackError
from producers.importer.read import InvalidLogError, Problem
from producers.importer.run import ImportRefusedError
from producers.importer.spec import SpecError
from producers.outbox import UnknownProductError
from producers.tenants import UnknownTenantError
from schemas.clock import InvalidClockError
from schemas.products.catalogue import UnknownProductError as NoSuchProduct
from schemas.products.check import Problem as ProductProblem

NO_BROKER = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NotConfigured("no database: run `make up`"), Exit.CONFIGURATION, "make up"),
        (DatabaseAway("at host=db: connection refused"), Exit.UNAVAILABLE, "host=db"),
        (DatabaseAway("password authentication failed for user"), Exit.CONFIGURATION, "authentication"),
        (psycopg.OperationalError("connection refused"), Exit.UNAVAILABLE, "TELLONCE_DATABASE_URL"),
        (errors.AdminShutdown("terminating connection"), Exit.UNAVAILABLE, "make up"),
        (errors.LockNotAvailable("lock timeout"), Exit.TEMPORARY, "Try again"),
        (errors.QueryCanceled("statement timeout"), Exit.TEMPORARY, "Try again"),
        (errors.SerializationFailure("could not serialize"), Exit.TEMPORARY, "Try again"),
        (errors.UndefinedTable('relation "platform.nudge"'), Exit.CONFIGURATION, "tellonce migrate"),
        (errors.InsufficientPrivilege("permission denied"), Exit.CONFIGURATION, "ADMIN_DATABASE_URL"),
        (errors.CheckViolation("a check"), Exit.PROBLEMS, "a check"),
        (NO_BROKER, Exit.UNAVAILABLE, "TELLONCE_KAFKA_BOOTSTRAP"),
        (httpx.ConnectError("refused"), Exit.UNAVAILABLE, "refused"),
        (ConnectAway("no answer"), Exit.UNAVAILABLE, "no answer"),
        (ConnectBusy("rebalancing"), Exit.TEMPORARY, "rebalancing"),
        (ConnectRefused("no", 400), Exit.PROBLEMS, "no"),
        (ConnectError("no address; set TELLONCE_CONNECT_URL"), Exit.CONFIGURATION, "TELLONCE_CONNECT_URL"),
        (PartitionCountChanged({"events.loans": (6, 12)}), Exit.CONFIGURATION, "events.loans has 6"),
        (SchemaVersionError("run `tellonce migrate`"), Exit.CONFIGURATION, "tellonce migrate"),
        (InvalidProduct([ProductProblem("p.yaml", 3, "no")]), Exit.CONFIGURATION, "p.yaml:3: no"),
        (StopRunning("the database is away", EXIT_TEMPFAIL), Exit.TEMPORARY, "away"),
        (DeadLetterRefused("retried already"), Exit.PROBLEMS, "already"),
        (DeliveryRefused("delivery 7 has been sent"), Exit.PROBLEMS, "been sent"),
        (StackError("no port"), Exit.PROBLEMS, "no port"),
        (ProcessEndedError("clock ended with exit code 70:\nits log"), Exit.PROBLEMS, "its log"),
        (UnknownTenantError("tenant 'x'"), Exit.PROBLEMS, "tenant 'x'"),
        (UnknownProductError("product 'x'"), Exit.PROBLEMS, "product 'x'"),
        (NoSuchProduct("no product 'x' here"), Exit.PROBLEMS, "no product 'x' here"),
        (ImportRefusedError("other rows"), Exit.PROBLEMS, "other rows"),
        (InvalidLogError([Problem("log.csv", 2, "time", "no time")]), Exit.PROBLEMS, "log.csv:2:time"),
        (SpecError("--type-map names it twice"), Exit.USAGE, "--type-map"),
        (InvalidClockError("rate -1"), Exit.USAGE, "rate -1"),
        (TimeoutError("unknown after 15 s"), Exit.TEMPORARY, "15 s"),
        (OSError(errno.EADDRINUSE, "Address already in use"), Exit.CONFIGURATION, "TELLONCE_METRICS_PORT"),
        (FileNotFoundError(2, "No such file or directory", "log.csv"), Exit.PROBLEMS, "log.csv"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_expected_error_is_told_in_words(error: Exception, code: Exit, said: str) -> None:
    told = explain(error)

    assert told.exit_code == code
    assert said in told.message
    assert "Traceback" not in told.message


def test_a_wrong_setting_is_named_as_the_variable_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLONCE_LATENCY", "immediate")
    with pytest.raises(ValueError, match="latency") as caught:
        Settings()

    told = explain(caught.value)

    assert told.exit_code == Exit.CONFIGURATION
    assert "TELLONCE_LATENCY" in told.message


def test_a_setting_that_is_no_json_is_told_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLONCE_KAFKA_OPTIONS", "sasl.password=hunter2")
    with pytest.raises(Exception, match="kafka_options") as caught:
        Settings()
    assert isinstance(caught.value, Exception)

    told = explain(caught.value)

    assert told.exit_code == Exit.CONFIGURATION
    assert "kafka_options" in told.message
    assert "hunter2" not in told.message


def test_a_defect_is_one_line_and_its_trace_is_in_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RuntimeError) as caught:
        _break()

    told = explain(caught.value)

    assert told.exit_code == Exit.DEFECT
    assert len(told.message.splitlines()) == 1
    assert "TELLONCE_LOG_LEVEL=debug" in told.message
    (trace,) = tmp_path.iterdir()
    assert str(trace) in told.message
    assert "test_failures.py" in trace.read_text()
    assert trace.stat().st_mode & 0o077 == 0


def _break() -> None:
    raise RuntimeError("first line\nsecond line")
