"""Roles, database and logins: made once, brought up to date when run again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import conninfo
from psycopg import sql as compose
from pydantic import SecretStr

from connectors.postgres import pool
from connectors.postgres.bootstrap import Login, bootstrap
from deploy.local.stack import Stack
from tests.integration.postgres.conftest import Conn, Connect


@pytest.fixture
def admin(pg_only: Stack, connect: Connect) -> Conn:
    return connect(pg_only.admin_dsn)


@pytest.fixture
def login(admin: Conn) -> Iterator[Login]:
    made = Login(f"r_{uuid.uuid4().hex[:16]}", SecretStr(uuid.uuid4().hex), "connect")
    yield made
    admin.execute(compose.SQL("DROP ROLE IF EXISTS {}").format(compose.Identifier(made.role)))


def test_again_changes_nothing_but_the_password(pg_only: Stack, admin: Conn, login: Login) -> None:
    bootstrap(admin, [login])
    bootstrap(admin, [login])
    dsn = conninfo.make_conninfo(
        pg_only.connect_dsn, user=login.role, password=login.password.get_secret_value()
    )
    with psycopg.connect(dsn) as conn:
        row = conn.execute(
            "SELECT rolreplication, pg_has_role('connect', 'member') FROM pg_roles"
            " WHERE rolname = current_user"
        ).fetchone()
    assert row == (True, True)
    renewed = Login(login.role, SecretStr("another"), login.group)
    bootstrap(admin, [renewed])
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(dsn)


def test_passwords_are_kept_and_sent_as_verifiers(admin: Conn, login: Login) -> None:
    bootstrap(admin, [login])
    row = admin.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [login.role]).fetchone()
    assert row is not None
    assert row[0].startswith("SCRAM-SHA-256$")
    assert login.password.get_secret_value() not in repr(login)


def test_needs_autocommit(pg_only: Stack) -> None:
    with psycopg.connect(pg_only.admin_dsn) as conn, pytest.raises(RuntimeError, match="autocommit"):
        bootstrap(conn)


def test_strangers_stay_outside(admin: Conn) -> None:
    row = admin.execute(
        "SELECT count(*) FROM pg_database d, aclexplode(d.datacl) g"
        " WHERE d.datname = 'tellonce' AND g.grantee = 0"
    ).fetchone()
    assert row == (0,)


def test_a_session_has_its_name_limits_and_utc(pg_only: Stack) -> None:
    with pool.connect(pg_only.consumer_dsn, "test.session", statement_timeout_ms=1234) as conn:
        row = conn.execute(
            "SELECT current_setting('application_name'), current_setting('statement_timeout'),"
            " current_setting('lock_timeout'), current_setting('timezone')"
        ).fetchone()
    assert row == ("test.session", "1234ms", "10s", "UTC")


def test_a_pool_outlives_its_connections(pg_only: Stack, admin: Conn) -> None:
    with pool.open_pool(pg_only.consumer_dsn, name="test.pool", max_size=1) as connections:
        with connections.connection() as conn:
            pid = conn.info.backend_pid
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        with connections.connection() as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
            assert conn.info.backend_pid != pid
