"""As tenant A's role, every table, view and partition: B's rows can be neither read nor written."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import errors
from psycopg import sql as compose

from connectors.postgres.bootstrap import Group
from tests.integration.postgres.conftest import Conn, Party

RELATIONS = """
    SELECT n.nspname, c.relname, c.relkind::text
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE (n.nspname = 'platform' OR n.nspname LIKE 'tenant\\_%%') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
       AND (n.nspname = 'platform' OR n.nspname = ANY (%s))
     ORDER BY 1, 2"""
"""From the catalog, so that a table somebody adds is looked at without anybody remembering to."""

REFUSALS = ("42501", "42809", "428C9", "55000", "23502", "TO001")


@dataclass(frozen=True)
class Relation:
    schema: str
    name: str
    kind: str

    @property
    def sql(self) -> compose.Composable:
        return compose.Identifier(self.schema, self.name)


@dataclass(frozen=True)
class Neighbours:
    ours: Party
    theirs: Party
    relations: list[Relation]


@pytest.fixture(params=["domain", "analyst"])
def neighbours(
    request: pytest.FixtureRequest, owner: Conn, make_party: Callable[[Group], Party]
) -> Neighbours:
    """Two tenants with a row in every table that has a tenant, and all relations there are."""
    ours, theirs = make_party(request.param), make_party(request.param)
    for party in (ours, theirs):
        fill(owner, party.tenant)
    found = owner.execute(RELATIONS, [[ours.schema, theirs.schema]]).fetchall()
    return Neighbours(ours, theirs, [Relation(*row) for row in found])


def test_every_table_of_tenants_is_guarded_and_holds_a_row_of_both(
    neighbours: Neighbours, owner: Conn
) -> None:
    guarded = dict(
        owner.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'platform'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
    )
    tables = [relation for relation in neighbours.relations if relation.schema == "platform"]
    assert {table.name for table in tables if not guarded[table.name]} == set()
    for table in tables:
        if table.name[-8:].isdigit() or table.name.endswith("_default"):
            continue
        query = compose.SQL("SELECT DISTINCT tenant_id FROM {} WHERE tenant_id = ANY (%s)").format(table.sql)
        seen = {row[0] for row in owner.execute(query, [both(neighbours)]).fetchall()}
        assert seen == set(both(neighbours)), (
            f"{table.name}: `fill` has to learn of it, or this test proves nothing"
        )


@pytest.mark.parametrize("narrowed_to", [None, "ours", "theirs"])
def test_their_rows_cannot_be_read(neighbours: Neighbours, narrowed_to: str | None) -> None:
    ours, theirs, read = neighbours.ours, neighbours.theirs, 0
    setting = {None: "", "ours": ours.tenant, "theirs": theirs.tenant}[narrowed_to]
    ours.conn.execute("SELECT set_config('app.tenant_id', %s, false)", [setting])
    for relation in neighbours.relations:
        query = compose.SQL("SELECT tenant_id FROM {}").format(relation.sql)
        try:
            seen = {row[0] for row in ours.conn.execute(query).fetchall()}
        except errors.InsufficientPrivilege:
            continue
        assert seen <= ({ours.tenant} if narrowed_to != "theirs" else set()), relation
        read += bool(seen)
    assert bool(read) == (narrowed_to != "theirs"), "a role sees its own tenant, unless narrowed to another"


@pytest.mark.parametrize("narrowed", [False, True])
def test_their_rows_cannot_be_written(neighbours: Neighbours, owner: Conn, narrowed: bool) -> None:
    ours, theirs = neighbours.ours, neighbours.theirs
    ours.conn.execute("SELECT set_config('app.tenant_id', %s, false)", [theirs.tenant if narrowed else ""])
    before = contents(owner, theirs.tenant, neighbours.relations)
    for relation in neighbours.relations:
        for statement in (
            "UPDATE {} SET tenant_id = tenant_id WHERE tenant_id = {}",
            "DELETE FROM {} WHERE tenant_id = {}",
            "INSERT INTO {0} SELECT * FROM {0} WHERE tenant_id = {1}",
            "INSERT INTO {} (tenant_id) VALUES ({})",
            "TRUNCATE {}",
        ):
            query = compose.SQL(statement).format(relation.sql, compose.Literal(theirs.tenant))
            refused, touched = attempt(ours.conn, query)
            assert refused in REFUSALS or touched == 0, (relation, statement, refused, touched)
    assert contents(owner, theirs.tenant, neighbours.relations) == before


def test_an_event_of_theirs_is_refused_by_every_door(make_party: Callable[[Group], Party]) -> None:
    ours, theirs = make_party("domain"), make_party("domain")
    for narrowed in ("", ours.tenant, theirs.tenant):
        ours.conn.execute("SELECT set_config('app.tenant_id', %s, false)", [narrowed])
        for statement, code in (
            ("INSERT INTO platform.outbox (tenant_id, product, subject_id, event_type, payload)"
             " VALUES ({theirs}, 'loans', 'L-1', 'loans.initiated', '{{}}')", "TO001"),
            ("INSERT INTO {our_view} (tenant_id, product, subject_id, event_type, payload)"
             " VALUES ({theirs}, 'loans', 'L-1', 'loans.initiated', '{{}}')", "TO001"),
            ("INSERT INTO {their_view} (product, subject_id, event_type, payload)"
             " VALUES ('loans', 'L-1', 'loans.initiated', '{{}}')", "42501"),
            ("SELECT platform.append({theirs}, 'loans', 'L-1', 'loans.initiated', '{{}}')", "TO001"),
        ):  # fmt: skip
            query = compose.SQL(statement).format(
                theirs=compose.Literal(theirs.tenant),
                our_view=compose.Identifier(ours.schema, "outbox"),
                their_view=compose.Identifier(theirs.schema, "outbox"),
            )
            with pytest.raises(psycopg.Error) as caught:
                ours.conn.execute(query)
            assert caught.value.sqlstate == code, (narrowed, statement)


def test_the_view_refuses_what_it_would_not_show(make_party: Callable[[Group], Party], owner: Conn) -> None:
    """WITH CHECK OPTION, which only shows once a role has two tenants."""
    ours, also_ours = make_party("domain"), make_party("domain")
    owner.execute("SELECT platform.grant_tenant(%s, %s)", [also_ours.tenant, ours.role])
    query = compose.SQL(
        "INSERT INTO {} (tenant_id, product, subject_id, event_type, payload)"
        " VALUES (%s, 'loans', 'L-1', 'loans.initiated', '{{}}')"
    ).format(compose.Identifier(ours.schema, "outbox"))
    with pytest.raises(errors.WithCheckOptionViolation):
        ours.conn.execute(query, [also_ours.tenant])
    ours.conn.execute(query, [ours.tenant])


def test_a_service_uses_plain_names_within_its_transaction(make_party: Callable[[Group], Party]) -> None:
    ours = make_party("domain")
    with ours.conn.transaction():
        ours.conn.execute("SELECT set_config('search_path', %s, true)", [ours.schema])
        ours.conn.execute("SELECT set_config('app.tenant_id', %s, true)", [ours.tenant])
        ours.conn.execute(
            "INSERT INTO outbox (product, subject_id, event_type, payload)"
            " VALUES ('loans', 'L-1', 'loans.initiated', '{}')"
        )
        seen = ours.conn.execute("SELECT tenant_id, message_key FROM outbox").fetchall()
    assert seen == [(ours.tenant, f"{ours.tenant}:L-1")]
    with pytest.raises(errors.UndefinedTable):
        ours.conn.execute("SELECT FROM outbox")


def attempt(conn: Conn, query: compose.Composed) -> tuple[str | None, int]:
    """The refusal's SQLSTATE, or how many rows it touched: a role that may delete sees none of theirs to delete."""
    try:
        with conn.transaction(force_rollback=True):
            return None, conn.execute(query).rowcount
    except psycopg.Error as error:
        return error.sqlstate, -1


def both(neighbours: Neighbours) -> list[str]:
    return [neighbours.ours.tenant, neighbours.theirs.tenant]


def contents(owner: Conn, tenant: str, relations: list[Relation]) -> dict[str, str]:
    found = {}
    for relation in relations:
        query = compose.SQL("SELECT json_agg(r ORDER BY r::text)::text FROM {} AS r WHERE tenant_id = %s")
        row = owner.execute(query.format(relation.sql), [tenant]).fetchone()
        found[f"{relation.schema}.{relation.name}"] = str(row)
    return found


def fill(owner: Conn, tenant: str) -> None:
    """One row of `tenant` in every table that has a tenant."""
    [event_id] = owner.execute(
        "SELECT platform.append(%s, 'loans', 'L-1', 'loans.initiated', '{}')::text", [tenant]
    ).fetchone() or [""]
    derived = str(uuid.UUID(f"{event_id[:14]}8{event_id[15:]}"))
    values = {
        "tenant": tenant,
        "event": event_id,
        "nudge": derived,
        "derived": derived,
        "offset": uuid.uuid4().int % 2**62,
    }
    for statement in (
        "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)"
        " VALUES (%(event)s, %(tenant)s, 'supersession.loans', 'scheduled', now())",
        "INSERT INTO platform.journey_progress (tenant_id, product, subject_id, updated_at)"
        " VALUES (%(tenant)s, 'loans', 'L-1', now())",
        "INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, due_at,"
        " created_at, updated_at)"
        " VALUES (%(nudge)s, %(tenant)s, 'loans', 'L-1', 'k', 's', %(event)s, now(), now(), now())",
        'INSERT INTO platform.dead_letter (group_name, topic, topic_id, partition, "offset", tenant_id,'
        " reason, created_at)"
        " VALUES ('supersession.loans', 'events.loans', 'x', 0, %(offset)s, %(tenant)s, 'poison', now())",
        "INSERT INTO platform.import (tenant_id, import_id, product, first_started_at)"
        " VALUES (%(tenant)s, 'i', 'loans', now())",
        "INSERT INTO platform.resend_count (event_id, tenant_id, group_name, resends, last_at)"
        " VALUES (%(event)s, %(tenant)s, 'supersession.loans', 1, now())",
        "INSERT INTO platform.contact (tenant_id, user_id, email) VALUES (%(tenant)s, 'u', 'u@example.org')",
        "INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)"
        " VALUES (%(tenant)s, 'loans', 'L-1', 'applicant', 'u')",
        "INSERT INTO platform.notification (notification_id, tenant_id, product, subject_id, kind, intent_id,"
        " event_id, user_id, role, locale, zone, created_at) VALUES (%(derived)s, %(tenant)s, 'loans', 'L-1',"
        " 'k', %(derived)s, %(event)s, 'u', 'applicant', 'en', 'UTC', now())",
        "INSERT INTO platform.delivery (delivery_id, tenant_id, notification_id, product, subject_id, kind,"
        " user_id, role, channel, account, lane, event_id, due_at, created_at, updated_at)"
        " VALUES (%(derived)s, %(tenant)s, %(derived)s, 'loans', 'L-1', 'k', 'u', 'applicant', 'email',"
        " 'email', 'events.loans', %(event)s, now(), now(), now())",
        "INSERT INTO platform.delivery_body (delivery_id, tenant_id, address, content, frozen_at)"
        " VALUES (%(derived)s, %(tenant)s, 'u@example.org', '{}', now())",
        "INSERT INTO platform.delivery_attempt (delivery_id, tenant_id, attempt, token, began_at, ended_at,"
        " outcome) VALUES (%(derived)s, %(tenant)s, 1, %(derived)s, now(), now(), 'accepted')",
        "INSERT INTO platform.inapp_message (delivery_id, tenant_id, user_id, content, created_at)"
        " VALUES (%(derived)s, %(tenant)s, 'u', '{}', now())",
    ):
        owner.execute(statement.encode(), values)
