"""Least privilege: what a role may do is what it needs, asked of the catalog rather than of a list."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg import errors

from connectors.postgres import migrate
from connectors.postgres.bootstrap import Group
from deploy.local.stack import Stack
from tests.integration.postgres.conftest import Conn, Connect

WRITES = """
    SELECT c.relname || '.' || p FROM pg_class c,
    unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p
     WHERE c.relnamespace = 'platform'::regnamespace AND c.relkind IN ('r', 'p')
       AND (has_table_privilege(%(role)s, c.oid, p)
            OR p IN ('INSERT', 'UPDATE') AND has_any_column_privilege(%(role)s, c.oid, p))
     ORDER BY 1"""

DIRECTORY = ("contact", "assignment")
"""What a domain role tells of people and may take back."""


@pytest.mark.parametrize(
    ("role", "writes"),
    [
        (
            "domain",
            {
                "outbox.INSERT",
                *(f"{table}.{p}" for table in DIRECTORY for p in ("INSERT", "UPDATE", "DELETE")),
            },
        ),
        ("analyst", set()),
        ("gateway", set()),
        ("connect", set()),
    ],
)
def test_what_a_role_writes(owner: Conn, role: str, writes: set[str]) -> None:
    assert {row[0] for row in owner.execute(WRITES, {"role": role}).fetchall()} == writes


def test_a_consumer_writes_no_configuration_and_no_history(owner: Conn) -> None:
    writes = {row[0] for row in owner.execute(WRITES, {"role": "consumer"}).fetchall()}
    tables = {write.split(".")[0] for write in writes}
    assert not tables & {
        "tenant",
        "tenant_grant",
        "product",
        "installation",
        "clock",
        "import",
        "schema_migration",
    }
    assert not {write for write in writes if write.endswith((".TRUNCATE", ".REFERENCES", ".TRIGGER"))}
    assert {write for write in writes if write.startswith(("outbox", "decision"))} == {
        "outbox.INSERT",
        "outbox.DELETE",
        "decision.INSERT",
    }


def test_nothing_is_everybodys(owner: Conn) -> None:
    functions = owner.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p,"
        " aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g"
        " WHERE p.pronamespace = 'platform'::regnamespace AND g.grantee = 0"
    ).fetchall()
    tables = owner.execute(
        "SELECT c.relname FROM pg_class c, aclexplode(c.relacl) g"
        " WHERE c.relnamespace = 'platform'::regnamespace AND g.grantee = 0"
    ).fetchall()
    assert (functions, tables) == ([], [])


def test_a_domain_role_makes_nothing(domain: Conn) -> None:
    for statement in ("CREATE TABLE platform.mine ()", "CREATE SCHEMA mine", "CREATE TEMP TABLE mine ()"):
        with pytest.raises(errors.InsufficientPrivilege):
            domain.execute(statement.encode())


@pytest.mark.parametrize(
    "call",
    [
        "platform.ensure_partitions(current_date, 1)",
        "platform.drop_day(current_date)",
        "platform.create_tenant_schema('x')",
        "platform.grant_tenant('x', current_user)",
        "platform.guard_rows('platform.outbox')",
    ],
)
@pytest.mark.parametrize("group", ["domain", "analyst", "gateway"])
def test_upkeep_is_not_theirs(
    make_role: Callable[[Group], tuple[str, Conn]], group: Group, call: str
) -> None:
    _, conn = make_role(group)
    with pytest.raises(errors.InsufficientPrivilege):
        conn.execute(f"SELECT {call}".encode())


@pytest.mark.parametrize("group", ["domain", "consumer", "analyst", "gateway"])
def test_every_role_can_check_the_version(
    make_role: Callable[[Group], tuple[str, Conn]], group: Group
) -> None:
    _, conn = make_role(group)
    migrate.verify(conn)


def test_the_owner_is_no_superuser_and_bypasses_nothing(owner: Conn) -> None:
    row = owner.execute(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolreplication"
        " FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    assert row == (False, False, False, False)


def test_the_connector_reads_the_outbox_and_may_replicate(
    pg_only: Stack, connect: Connect, owner: Conn
) -> None:
    conn = connect(pg_only.connect_dsn)
    conn.execute("SELECT * FROM platform.outbox LIMIT 1")
    with pytest.raises(errors.InsufficientPrivilege):
        conn.execute("SELECT FROM platform.nudge")
    row = owner.execute(
        "SELECT rolreplication, rolsuper FROM pg_roles WHERE rolname = 'tellonce_connect'"
    ).fetchone()
    assert row == (True, False)


def test_secrets_of_the_dead_letters_stay_with_their_tenant(
    make_role: Callable[[Group], tuple[str, Conn]], consumer: Conn
) -> None:
    """A record whose tenant could not be read is nobody's: operators only."""
    consumer.execute(
        'INSERT INTO platform.dead_letter (group_name, topic, topic_id, partition, "offset", reason, body,'
        " created_at) VALUES ('g', 'events.loans', uuidv7()::text, 0, 0, 'undecodable', 'secret', now())"
    )
    _, analyst = make_role("analyst")
    assert analyst.execute(
        "SELECT count(*) FROM platform.dead_letter WHERE tenant_id IS NULL"
    ).fetchone() == (0,)
