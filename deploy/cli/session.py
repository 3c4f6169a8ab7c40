"""What a command works with, made from the settings when it is first needed and closed at the end.

Two logins: `TELLONCE_DATABASE_URL` (role consumer) to look and to run, `TELLONCE_ADMIN_DATABASE_URL` (the
owner) for what changes the installation. A command asks for the weaker one that will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka.admin import AdminClient

from connectors.debezium.client import ConnectClient
from connectors.kafka.clients import admin_client
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
    dsn = _required(settings().database_url.get_secret_value(), "TELLONCE_DATABASE_URL")
    with connected(dsn, "TELLONCE_DATABASE_URL") as conn:
        verify(conn)
        yield conn


@contextmanager
def owner(*, migrating: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """A connection that changes the installation: the owner's, autocommit, the schema's version checked
    unless it is about to be changed.
    """
    dsn = _required(settings().admin_database_url.get_secret_value(), "TELLONCE_ADMIN_DATABASE_URL")
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
    return ConnectClient(_required(settings().connect_url, "TELLONCE_CONNECT_URL"))


def kafka_admin() -> AdminClient:
    """Kafka's admin client, of a broker that has just answered: one that is away is told soon, as KafkaException."""
    given = settings()
    _required(given.kafka_bootstrap, "TELLONCE_KAFKA_BOOTSTRAP")
    admin = admin_client(given)
    admin.list_topics(timeout=BROKER_ANSWERS_WITHIN_S)
    return admin


def product_folders(given: list[Path] | None) -> list[Path]:
    """Those named, else those of `TELLONCE_PRODUCTS`; a folder of products stands for its products."""
    folders: list[Path] = []
    for path in given or settings().products:
        inside = sorted(found.parent for found in path.glob("*/product.yaml"))
        folders += [path] if (path / "product.yaml").is_file() or not inside else inside
    return folders


def _required(value: str, variable: str) -> str:
    if not value:
        raise NotConfigured(f"{variable} is not set: {START_ONE}, or set it to where yours is")
    return value


def _first_line(error: BaseException) -> str:
    """What libpq says, without the questions it appends."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
