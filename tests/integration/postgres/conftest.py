"""Connections as the roles of the installation, tenants with roles of their own, and databases to spare."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import conninfo
from psycopg import sql as compose
from pydantic import SecretStr

from connectors.postgres.bootstrap import Group, Login, create_login
from deploy.local.stack import Stack
from producers import tenants

Conn: TypeAlias = psycopg.Connection[Any]
Connect: TypeAlias = Callable[[str], Conn]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Opens connections in autocommit that close with the test."""
    with ExitStack() as opened:
        yield lambda dsn: opened.enter_context(psycopg.connect(dsn, autocommit=True))


@pytest.fixture
def owner(pg_only: Stack, connect: Connect) -> Conn:
    return connect(pg_only.owner_dsn)


@pytest.fixture
def consumer(pg_only: Stack, connect: Connect) -> Conn:
    return connect(pg_only.consumer_dsn)


@pytest.fixture
def domain(pg_only: Stack, connect: Connect) -> Conn:
    """The loan service: granted whatever the fixture `tenant` made."""
    return connect(pg_only.domain_dsn)


@dataclass(frozen=True)
class Party:
    """A tenant with a schema of views, and a role that was granted this tenant and no other."""

    tenant: str
    role: str
    schema: str
    conn: Conn


@pytest.fixture
def make_role(pg_only: Stack, connect: Connect) -> Iterator[Callable[[Group], tuple[str, Conn]]]:
    """Makes a login of a group, which the test's end drops again."""
    admin = connect(pg_only.admin_dsn)
    made: list[str] = []

    def make(group: Group) -> tuple[str, Conn]:
        role, password = f"r_{uuid.uuid4().hex[:16]}", uuid.uuid4().hex
        create_login(admin, Login(role, SecretStr(password), group))
        made.append(role)
        return role, connect(conninfo.make_conninfo(pg_only.domain_dsn, user=role, password=password))

    yield make
    with psycopg.connect(pg_only.owner_dsn) as owner:
        for role in made:
            owner.execute("DELETE FROM platform.tenant_grant WHERE role = %s", [role])
    for role in made:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
        admin.execute(compose.SQL("DROP OWNED BY {0}").format(compose.Identifier(role)))
        admin.execute(compose.SQL("DROP ROLE {}").format(compose.Identifier(role)))


@pytest.fixture
def make_party(owner: Conn, make_role: Callable[[Group], tuple[str, Conn]]) -> Callable[[Group], Party]:
    def make(group: Group) -> Party:
        role, conn = make_role(group)
        tenant = tenants.create(owner, f"t-{uuid.uuid4().hex[:16]}", roles=[role], own_schema=True)
        assert tenant.schema_name is not None
        return Party(tenant.tenant_id, role, tenant.schema_name, conn)

    return make


@pytest.fixture
def spare_database(pg_only: Stack) -> Iterator[str]:
    """An empty database of the owner's on the same server; its DSN as the owner."""
    name = f"spare_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(pg_only.admin_dsn, autocommit=True) as admin:
        create = "CREATE DATABASE {} OWNER tellonce_owner TEMPLATE template0"
        admin.execute(compose.SQL(create).format(compose.Identifier(name)))
        yield conninfo.make_conninfo(pg_only.owner_dsn, dbname=name)
        admin.execute(compose.SQL("DROP DATABASE {} WITH (FORCE)").format(compose.Identifier(name)))
