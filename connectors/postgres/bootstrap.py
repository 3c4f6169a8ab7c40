"""Roles and database, made by a superuser once per cluster (`schemas/sql/bootstrap.sql`); may run again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from psycopg import Connection, errors
from psycopg import sql as compose
from pydantic import SecretStr

from connectors.postgres import sql

DATABASE = "tellonce"
OWNER = "tellonce_owner"

Group = Literal["domain", "consumer", "gateway", "analyst", "connect"]

_BOOTSTRAP = sql.load("schemas.sql", "bootstrap.sql")


@dataclass(frozen=True, slots=True)
class Login:
    """A role somebody logs in with. `group` says what it may do; None is for the owner."""

    role: str
    password: SecretStr
    group: Group | None


def bootstrap(conn: Connection, logins: Sequence[Login] = ()) -> None:
    """Makes roles, database and logins, or brings them up to date. `conn` is a superuser's, in autocommit.

    Several may run it at once on one cluster. Passwords travel as SCRAM verifiers: none shows in the
    server's log.
    """
    if not conn.autocommit:
        raise RuntimeError(
            "bootstrap needs a connection in autocommit: CREATE DATABASE runs outside transactions"
        )
    conn.execute(_BOOTSTRAP.roles)
    exists = conn.execute("SELECT FROM pg_catalog.pg_database WHERE datname = %s", [DATABASE]).fetchone()
    if exists is None:
        with suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # somebody else was faster
            conn.execute(_BOOTSTRAP.create_database)
    conn.execute(_BOOTSTRAP.database_access)
    for login in logins:
        create_login(conn, login)


def create_login(conn: Connection, login: Login) -> None:
    """Makes the login, or sets its password; adds it to its group. Needs CREATEROLE, and REPLICATION for
    `connect`. A login that changes its group is taken out of the old one by whoever changes it.
    """
    role = compose.Identifier(login.role)
    verifier = conn.pgconn.encrypt_password(
        login.password.get_secret_value().encode(), login.role.encode(), b"scram-sha-256"
    )
    if conn.execute("SELECT FROM pg_catalog.pg_roles WHERE rolname = %s", [login.role]).fetchone() is None:
        conn.execute(compose.SQL("CREATE ROLE {}").format(role))
    attributes = compose.SQL("LOGIN REPLICATION") if login.group == "connect" else compose.SQL("LOGIN")
    conn.execute(
        compose.SQL("ALTER ROLE {} {} PASSWORD {}").format(
            role, attributes, compose.Literal(verifier.decode())
        )
    )
    if login.group is not None:
        conn.execute(compose.SQL("GRANT {} TO {}").format(compose.Identifier(login.group), role))
