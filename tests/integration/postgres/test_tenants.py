"""Tenants at run time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import errors

from connectors.postgres import clock
from connectors.postgres.bootstrap import Group
from producers import tenants
from tests.integration.postgres.conftest import Conn, Party

THEN = datetime(2012, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:16]}"


def test_create_and_list(owner: Conn, name: str) -> None:
    made = tenants.create(
        owner, name, "  Acme Bank ", roles=["loans_service", "tellonce_analyst"], held_at=THEN
    )
    assert made == tenants.get(owner, name)
    assert (made.name, made.state, made.held_at, made.schema_name) == ("Acme Bank", "active", THEN, None)
    assert made.roles == ["loans_service", "tellonce_analyst"]
    assert made in tenants.every(owner)
    ids = [tenant.tenant_id for tenant in tenants.every(owner)]
    assert ids == sorted(ids)


def test_a_tenant_exists_once(owner: Conn, name: str) -> None:
    tenants.create(owner, name)
    with pytest.raises(tenants.TenantExistsError, match=name):
        tenants.create(owner, name)


@pytest.mark.parametrize("bad", ["", "Acme", "a_b", "a:b", "a b", "x" * 41, "ä"])
def test_ids_are_slugs(owner: Conn, bad: str) -> None:
    with pytest.raises(tenants.InvalidTenantError, match="1 to 40 of a-z"):
        tenants.create(owner, bad)


def test_a_name_is_not_empty_and_instants_are_aware(owner: Conn, name: str) -> None:
    with pytest.raises(tenants.InvalidTenantError, match="name"):
        tenants.create(owner, name, "  ")
    with pytest.raises(tenants.InvalidTenantError, match="time zone"):
        tenants.create(owner, name, held_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_creating_is_all_or_nothing(owner: Conn, name: str) -> None:
    with pytest.raises(tenants.UnknownRoleError, match="nobody_at_all"):
        tenants.create(owner, name, roles=["loans_service", "nobody_at_all"], own_schema=True)
    with pytest.raises(tenants.UnknownTenantError):
        tenants.get(owner, name)


def test_suspend_and_resume(owner: Conn, name: str) -> None:
    tenants.create(owner, name)
    for _ in range(2):
        tenants.suspend(owner, name)
        assert tenants.get(owner, name).state == "suspended"
    tenants.resume(owner, name)
    assert tenants.get(owner, name).state == "active"


def test_a_held_clock_stands_and_runs_on_when_released(owner: Conn, consumer: Conn, name: str) -> None:
    tenants.create(owner, name)
    assert tenants.hold(owner, name, THEN) == THEN
    assert tenants.hold(owner, name) == THEN, "held where its clock stands"
    assert time_of(consumer, name) == THEN
    assert clock.tenant_now(consumer, [name]) == {name: THEN}
    tenants.release(owner, name)
    assert tenants.get(owner, name).held_at is None
    before, by_sql, after = clock.now(consumer), time_of(consumer, name), clock.now(consumer)
    assert before <= by_sql <= after


def time_of(conn: Conn, tenant: str) -> datetime:
    row = conn.execute("SELECT platform.clock_now(%s)", [tenant]).fetchone()
    assert row is not None
    assert isinstance(row[0], datetime)
    return row[0]


@pytest.mark.parametrize(
    "act",
    [
        tenants.get,
        tenants.suspend,
        tenants.resume,
        tenants.hold,
        tenants.release,
        tenants.create_schema,
        tenants.drop_schema,
        lambda conn, tenant: tenants.grant(conn, tenant, "loans_service"),
        lambda conn, tenant: tenants.revoke(conn, tenant, "loans_service"),
    ],
)
def test_an_unknown_tenant_is_named(owner: Conn, name: str, act: Callable[[Conn, str], object]) -> None:
    with pytest.raises(tenants.UnknownTenantError, match=name):
        act(owner, name)


def test_grant_and_revoke_take_effect_at_once(owner: Conn, domain: Conn, name: str) -> None:
    tenants.create(owner, name)
    append = "SELECT platform.append(%s, 'loans', 'L-1', 'loans.initiated', '{}')"
    assert tenants.grant(owner, name, "loans_service")
    assert not tenants.grant(owner, name, "loans_service")
    domain.execute(append, [name])
    assert tenants.revoke(owner, name, "loans_service")
    assert not tenants.revoke(owner, name, "loans_service")
    with pytest.raises(psycopg.DatabaseError, match="not granted"):
        domain.execute(append, [name])


def test_a_schema_comes_and_goes_and_the_data_stays(
    owner: Conn, make_party: Callable[[Group], Party]
) -> None:
    ours = make_party("domain")
    insert = f"INSERT INTO {ours.schema}.outbox (product, subject_id, event_type, payload)"
    insert += " VALUES ('loans', 'L-1', 'x', '{}')"
    ours.conn.execute(insert.encode())
    assert tenants.create_schema(owner, ours.tenant) == ours.schema, "again changes nothing"
    assert tenants.drop_schema(owner, ours.tenant)
    assert not tenants.drop_schema(owner, ours.tenant)
    with pytest.raises((errors.UndefinedTable, errors.InvalidSchemaName)):
        ours.conn.execute(insert.encode())
    count = ours.conn.execute(
        "SELECT count(*) FROM platform.outbox WHERE tenant_id = %s", [ours.tenant]
    ).fetchone()
    assert count == (1,)


def test_a_schema_somebody_builds_on_is_not_dropped(
    owner: Conn, make_party: Callable[[Group], Party]
) -> None:
    ours = make_party("domain")
    owner.execute(f"CREATE VIEW {ours.schema}.mine AS SELECT event_id FROM {ours.schema}.outbox".encode())
    with pytest.raises(tenants.SchemaInUseError, match="mine"):
        tenants.drop_schema(owner, ours.tenant)
    assert tenants.get(owner, ours.tenant).schema_name == ours.schema


def test_a_role_may_be_granted_before_or_after_the_schema(owner: Conn, domain: Conn, name: str) -> None:
    tenants.create(owner, name, roles=["loans_service"])
    schema = tenants.create_schema(owner, name)
    domain.execute(f"SELECT FROM {schema}.outbox".encode())
    tenants.revoke(owner, name, "loans_service")
    with pytest.raises(errors.InsufficientPrivilege):
        domain.execute(f"SELECT FROM {schema}.outbox".encode())
    tenants.grant(owner, name, "loans_service")
    domain.execute(f"SELECT FROM {schema}.outbox".encode())


def test_the_clock_in_sql_moves_as_in_python(owner: Conn) -> None:
    """Offset, pace and a session's own time zone, in a transaction that leaves the clock as it was."""
    with owner.transaction(force_rollback=True):
        owner.execute("SET LOCAL timezone TO 'Europe/Berlin'")
        owner.execute(
            "UPDATE platform.clock SET real_at = now() - interval '240 hours',"
            " clock_at = '2026-03-20Z', rate = 2"
        )
        assert time_of(owner, "any") == datetime(2026, 4, 9, tzinfo=UTC), "a day is 24 hours, across DST too"
