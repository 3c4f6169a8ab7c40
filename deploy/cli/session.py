"""What a command works with, made from the settings when it is first needed and closed at the end.

Two logins: `TELLONCE_DATABASE_URL` (role consumer) to look and to run, `TELLONCE_ADMIN_DATABASE_URL` (the
owner) for what changes the installation. A command asks for the weaker one that will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from confluent_kafka.admin import AdminClient
from pydantic import SecretStr

from connectors.debezium.client import ConnectClient
from connectors.kafka.clients import admin_client
from connectors.kafka.topics import TopicSpec, topics_for
from connectors.postgres import pool
from connectors.postgres.migrate import verify
from connectors.registry import load_catalogue
from connectors.settings import Settings
from deploy.cli.failures import DatabaseAway, NotConfigured
from schemas.products.catalogue import Catalogue

BROKER_ANSWERS_WITHIN_S = 5.0
"""A person waits for this; the requests after it have longer, for they do something."""
START_ONE = "`make up` starts a local stack and writes it to .local/tellonce.env"


def settings() -> Settings:
    """Read anew by each command: `make up` may have written them since."""
    return Settings()


def catalogue() -> Catalogue:
    """The products of this installation; raises `InvalidProduct` with all that is wrong."""
    return load_catalogue(settings().products)


@contextmanager
def reader() -> Iterator[psycopg.Connection[Any]]:
    """A connection that looks: role consumer, autocommit, the schema's version checked."""
    dsn = required(settings(), "database_url")
    with connected(dsn, "TELLONCE_DATABASE_URL") as conn:
        verify(conn)
        yield conn


@contextmanager
def owner(*, migrating: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """A connection that changes the installation: the owner's, autocommit, the schema's version checked
    unless it is about to be changed.
    """
    dsn = required(settings(), "admin_database_url")
    with connected(dsn, "TELLONCE_ADMIN_DATABASE_URL") as conn:
        if not migrating:
            verify(conn)
        yield conn


@contextmanager
def connected(dsn: str, variable: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect, or say where nobody answered and which setting says so."""
    try:
        conn = pool.connect(dsn, "tellonce", autocommit=True, statement_timeout_ms=0)
    except psycopg.OperationalError as error:
        raise DatabaseAway(
            f"PostgreSQL does not let us in at {pool.describe(dsn)}: {_first_line(error)}. "
            f"Is it running, and {variable} right? {START_ONE}."
        ) from error
    except psycopg.ProgrammingError as error:
        raise NotConfigured(f"{variable} is no database address: {_first_line(error)}") from error
    with conn:
        yield conn


def connect_client() -> ConnectClient:
    """Kafka Connect; nobody is asked before it is used. A context manager."""
    return ConnectClient(required(settings(), "connect_url"))


def kafka_admin() -> AdminClient:
    """Kafka's admin client, of a broker that has just answered: one that is away is told soon, as KafkaException."""
    given = settings()
    required(given, "kafka_bootstrap")
    admin = admin_client(given)
    admin.list_topics(timeout=BROKER_ANSWERS_WITHIN_S)
    return admin


def topics() -> list[TopicSpec]:
    """The topics that this installation needs: its products', kept for as long as its horizon asks."""
    with reader() as conn:
        row = conn.execute("SELECT horizon FROM platform.installation").fetchone()
    assert row is not None  # migrations write the installation's row
    return topics_for(catalogue().products, row[0])


def required(given: Settings, field: str) -> str:
    """The value of this setting; raises `NotConfigured` when it is empty."""
    value = getattr(given, field)
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if not text:
        raise NotConfigured(f"TELLONCE_{field.upper()} is not set: {START_ONE}, or set it to where yours is")
    return text


def _first_line(error: BaseException) -> str:
    """What libpq says, without the questions it appends."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
