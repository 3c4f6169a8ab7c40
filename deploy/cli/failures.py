"""What an error means for whoever typed the command: one message (what, where, how to mend) and an exit code."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from traceback import format_exception

import httpx
import psycopg
from confluent_kafka import KafkaException
from pydantic import ValidationError
from pydantic_settings import SettingsError

from connectors.debezium.client import ConnectAway, ConnectBusy, ConnectError, ConnectRefused
from connectors.debezium.rebuild import RebuildError
from connectors.kafka.topics import PartitionCountChanged
from connectors.logging import get_logger
from connectors.postgres.clock import ClockMissingError
from connectors.postgres.errors import Fault, fault, message
from connectors.postgres.migrate import SchemaVersionError
from connectors.registry import InvalidProduct
from consumers.delivery.operate import DeliveryRefused
from consumers.runtime.dead_letters import DeadLetterRefused
from consumers.runtime.errors import StopRunning
from deploy.cli.exits import Exit
from deploy.local.errors import StackError
from producers.importer.read import InvalidLogError
from producers.importer.run import ImportRefusedError
from producers.importer.spec import SpecError
from producers.outbox import OutboxError
from producers.tenants import TenantError
from schemas.clock import InvalidClockError
from schemas.products.catalogue import UnknownEventTypeError, UnknownProductError


class NotConfigured(Exception):  # noqa: N818 it is an answer to a person
    """A setting that the command needs is empty or no such thing; the message says which and how to get it."""


class DatabaseAway(Exception):  # noqa: N818 it is weather, not a defect
    """PostgreSQL does not let us in; the message says where and which setting leads there."""


_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """What to print and how to exit."""

    exit_code: int
    message: str


def explain(error: Exception) -> Failure:
    """What to tell about `error`; anything unknown is a defect and says how to see more."""
    text = str(error).strip()
    match error:
        case StopRunning():
            return Failure(error.exit_code, text)
        case ValidationError() | SettingsError():
            return Failure(Exit.CONFIGURATION, _settings(error))
        case InvalidProduct():
            count = len(error.problems)
            return Failure(
                Exit.CONFIGURATION, f"{count} problem{'s' * (count != 1)} in product folders:\n{text}"
            )
        case NotConfigured() | SchemaVersionError() | PartitionCountChanged() | ClockMissingError():
            return Failure(Exit.CONFIGURATION, text)
        case ConnectAway():
            return Failure(Exit.UNAVAILABLE, text)
        case ConnectBusy():
            return Failure(Exit.TEMPORARY, text)
        case ConnectRefused() | RebuildError() | StackError():
            return Failure(Exit.PROBLEMS, text)
        case ConnectError():
            return Failure(Exit.CONFIGURATION, text)
        case httpx.HTTPError():
            return Failure(Exit.UNAVAILABLE, f"an HTTP request failed: {text or type(error).__name__}")
        case KafkaException():
            return Failure(
                Exit.UNAVAILABLE,
                f"the broker did not do what was asked: {_kafka(error)}. "
                "Is it running (`tellonce status`), and TELLONCE_KAFKA_BOOTSTRAP right?",
            )
        case DatabaseAway():
            refused = "authentication failed" in text or "does not exist" in text
            return Failure(Exit.CONFIGURATION if refused else Exit.UNAVAILABLE, text)
        case psycopg.Error():
            return _database(error)
        case SpecError() | InvalidClockError():
            return Failure(Exit.USAGE, text)
        case TenantError() | OutboxError() | InvalidLogError() | ImportRefusedError():
            return Failure(Exit.PROBLEMS, text)
        case DeadLetterRefused() | DeliveryRefused():
            return Failure(Exit.PROBLEMS, text)
        case UnknownProductError() | UnknownEventTypeError():
            return Failure(Exit.PROBLEMS, str(error.args[0]))
        case TimeoutError():
            return Failure(Exit.TEMPORARY, text or "an answer did not come in time; try again")
        case OSError(errno=errno.EADDRINUSE | errno.EADDRNOTAVAIL):
            return Failure(
                Exit.CONFIGURATION,
                f"health and metrics have no place to be served ({error.strerror}): set TELLONCE_METRICS_PORT to"
                " a port that is free, or to 0, and TELLONCE_METRICS_HOST to an address of this machine",
            )
        case OSError(filename=str() as path):
            return Failure(Exit.PROBLEMS, f"{path}: {error.strerror}")
        case _:
            return _defect(error)


def _defect(error: Exception) -> Failure:
    """One line for whoever typed; the trace goes into a private file, and into the log at level debug."""
    _log.debug("defect", exc_info=error)
    said = (str(error).strip().splitlines() or ["no message"])[0]
    told = f"unexpected {type(error).__name__}: {said}"
    try:
        with NamedTemporaryFile(
            "w", prefix="tellonce-", suffix=".trace", delete=False, encoding="utf-8"
        ) as file:
            file.writelines(format_exception(error))
    except OSError:
        return Failure(Exit.DEFECT, f"{told}. TELLONCE_LOG_LEVEL=debug shows where it came from")
    return Failure(
        Exit.DEFECT, f"{told}. Its trace is in {file.name}; TELLONCE_LOG_LEVEL=debug shows it on the terminal"
    )


def _database(error: psycopg.Error) -> Failure:
    state = error.sqlstate or ""
    said = message(error).splitlines()[0]
    if state in ("42P01", "3F000", "42883"):
        return Failure(
            Exit.CONFIGURATION,
            f"the database is not what this program needs ({said}): run `tellonce migrate`",
        )
    if state == "42501":
        return Failure(
            Exit.CONFIGURATION,
            f"the login may not do this ({said}): check the user in TELLONCE_DATABASE_URL "
            "and TELLONCE_ADMIN_DATABASE_URL",
        )
    if state[:2] in ("28", "3D") or "authentication failed" in said or said.endswith("does not exist"):
        return Failure(
            Exit.CONFIGURATION, f"the database refuses the login: {said}. Check TELLONCE_DATABASE_URL"
        )
    match fault(error):
        case Fault.WEATHER if not state or (state[:2] in ("08", "57") and state != "57014"):
            return Failure(
                Exit.UNAVAILABLE,
                f"the database does not answer: {said}. Is it running (`make up`), and TELLONCE_DATABASE_URL right?",
            )
        case Fault.WEATHER | Fault.CONFLICT:
            return Failure(Exit.TEMPORARY, f"the database is busy: {said}. Try again")
        case _:
            return Failure(Exit.PROBLEMS, f"the database refused: {said}")


def _kafka(error: KafkaException) -> str:
    cause = error.args[0] if error.args else error
    return str(cause.str() if hasattr(cause, "str") else cause)


def _settings(error: ValidationError | SettingsError) -> str:
    if isinstance(error, SettingsError):
        return f"settings: {error}; lists and maps are written as JSON"
    lines = [
        f"TELLONCE_{'.'.join(map(str, problem['loc'])).upper()}: {problem['msg']}"
        for problem in error.errors()
    ]
    return "\n".join(["settings are not valid:", *lines])
