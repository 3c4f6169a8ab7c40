"""What the stream admits, by every door: a plain INSERT, the tenant's view, and `platform.append`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from threading import Thread
from typing import Any

import psycopg
import pytest
from psycopg import errors

from deploy.local.stack import Stack
from producers import tenants
from tests.integration.postgres.conftest import Conn

EVENT: dict[str, Any] = {
    "event_id": None,
    "product": "loans",
    "subject_id": "L-1",
    "event_type": "loans.initiated",
    "payload": b'{"amount": 1}',
}

Door = Callable[..., object]


def insert(conn: Conn, relation: str, **columns: Any) -> int:
    names = [name for name, value in columns.items() if value is not None]
    statement = f"INSERT INTO {relation} ({', '.join(names)}) VALUES ({', '.join(f'%({n})s' for n in names)})"
    return conn.execute(statement.encode(), columns).rowcount


@pytest.fixture(params=["insert", "view", "append"])
def door(request: pytest.FixtureRequest, owner: Conn, domain: Conn, tenant: str) -> Door:
    """Appends an event of `tenant` by one of the three doors."""
    if request.param == "insert":
        return lambda **given: insert(domain, "platform.outbox", **{"tenant_id": tenant, **EVENT, **given})
    if request.param == "view":
        schema = tenants.create_schema(owner, tenant)
        return lambda **given: insert(domain, f"{schema}.outbox", **{**EVENT, **given})

    def append(**given: Any) -> None:
        event = {"tenant_id": tenant, "occurred_at": None, "traceparent": None, **EVENT, **given}
        domain.execute(
            "SELECT platform.append(%(tenant_id)s, %(product)s, %(subject_id)s, %(event_type)s,"
            " %(payload)s::jsonb, %(occurred_at)s, %(event_id)s, %(traceparent)s)",
            {**event, "payload": event["payload"].decode()},
        )

    return append


def rows(conn: Conn, tenant: str) -> list[tuple[Any, ...]]:
    return conn.execute(
        "SELECT event_id::text, subject_id, key_id, message_key, topic, content_type, payload,"
        " occurred_at = recorded_at, position FROM platform.outbox WHERE tenant_id = %s ORDER BY position",
        [tenant],
    ).fetchall()


def new_id(conn: Conn, shift: str = "0") -> str:
    row = conn.execute("SELECT uuidv7(%s::interval)::text", [shift]).fetchone()
    assert row is not None
    return str(row[0])


def test_an_event_is_completed(door: Door, consumer: Conn, tenant: str) -> None:
    door()
    [(event_id, subject, key, message_key, topic, content_type, payload, same_time, position)] = rows(
        consumer, tenant
    )
    assert uuid.UUID(event_id).version == 7
    assert (subject, key, message_key, topic) == ("L-1", "L-1", f"{tenant}:L-1", "events.loans")
    assert content_type == "application/json"
    assert json.loads(payload) == {"amount": 1}
    assert same_time
    assert position > 0


def test_the_same_event_again_changes_nothing(door: Door, domain: Conn, consumer: Conn, tenant: str) -> None:
    event_id = new_id(domain)
    door(event_id=event_id)
    before = rows(consumer, tenant)
    door(event_id=event_id)
    door(event_id=event_id, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert rows(consumer, tenant) == before


def test_the_same_event_again_in_one_transaction(
    door: Door, domain: Conn, consumer: Conn, tenant: str
) -> None:
    with domain.transaction():
        event_id = new_id(domain)
        door(event_id=event_id)
        door(event_id=event_id)
    assert len(rows(consumer, tenant)) == 1


@pytest.mark.parametrize(
    "other",
    [{"payload": b'{"amount": 2}'}, {"subject_id": "L-2"}, {"event_type": "loans.withdrawn"}],
    ids=str,
)
def test_the_same_id_with_other_content_is_an_error(door: Door, domain: Conn, other: dict[str, Any]) -> None:
    event_id = new_id(domain)
    door(event_id=event_id)
    refused("TO008", "recorded already, with other content", door, event_id=event_id, **other)


REFUSALS = [
    ("TO002", 'product "nope" is not registered', {"product": "nope"}),
    ("TO004", "no subject id", {"subject_id": "a:b"}),
    ("TO004", "no subject id", {"subject_id": ""}),
    ("TO004", "no subject id", {"subject_id": "x" * 129}),
    ("TO005", "not a UUID version 7", {"event_id": str(uuid.uuid4())}),
    ("TO005", "not a UUID version 7", {"event_id": "00000000-0000-0000-0000-000000000000"}),
    ("TO006", "over the limit", {"payload": json.dumps({"a": "x" * 262_144}).encode()}),
    ("TO007", "not a JSON object", {"payload": b"[1]"}),
    ("TO009", "event_type has 1 to 128", {"event_type": "x" * 129}),
    ("TO009", "event_type has 1 to 128", {"event_type": ""}),
    ("TO009", "not an instant", {"occurred_at": "infinity"}),
    ("TO009", "outside the years 1 to 9999", {"occurred_at": "58794-06-01T00:00:00Z"}),
    ("TO009", "outside the years 1 to 9999", {"occurred_at": "9999-12-31T23:30:00-01"}),
    ("TO009", "outside the years 1 to 9999", {"occurred_at": "0044-03-15T12:00:00Z BC"}),
]


@pytest.mark.parametrize(("code", "message", "given"), REFUSALS, ids=[f"{c} {m}" for c, m, _ in REFUSALS])
def test_refused_with_a_clear_error(door: Door, code: str, message: str, given: dict[str, Any]) -> None:
    refused(code, message, door, **given)


def test_an_id_older_than_the_horizon_is_refused(door: Door, domain: Conn) -> None:
    refused("TO005", "before the horizon", door, event_id=new_id(domain, "-15 days"))


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00+02"])
def test_whatever_rfc_3339_can_say_is_an_instant(door: Door, at: str) -> None:
    door(occurred_at=at)


def test_a_payload_up_to_the_limit_is_admitted(door: Door) -> None:
    door(payload=b'{"a": "%s"}' % (b"x" * 200_000))


def test_an_unknown_tenant_and_one_of_somebody_else_are_refused_alike(
    domain: Conn, owner: Conn, tenant: str
) -> None:
    other = tenants.create(owner, f"{tenant[:20]}-other").tenant_id
    for name in (other, "nobody", None):
        with pytest.raises(psycopg.Error) as caught:
            insert(domain, "platform.outbox", **{**EVENT, "tenant_id": name})
        assert caught.value.sqlstate == "TO001"
        assert caught.value.diag.message_hint is not None


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("TO003", {"topic": "events.worklog"}),
        ("TO003", {"topic": "timers.loans", "key_id": "L-1"}),
        ("TO004", {"key_id": "L-2"}),
        ("TO007", {"payload": b'{"a": '}),
        ("TO007", {"payload": b'\xff{"a": 1}'}),
        ("TO007", {"payload": b"\xc3\x01binary", "content_type": "application/json; charset=utf-8"}),
    ],
    ids=str,
)
def test_refused_by_the_plain_insert(domain: Conn, tenant: str, code: str, given: dict[str, Any]) -> None:
    refused(code, None, insert, domain, "platform.outbox", **{"tenant_id": tenant, **EVENT, **given})


def test_bytes_that_name_their_format_are_taken_as_they_are(
    domain: Conn, consumer: Conn, tenant: str
) -> None:
    avro = {"tenant_id": tenant, **EVENT, "payload": b"\xc3\x01\x00", "content_type": "avro/binary"}
    insert(domain, "platform.outbox", **avro)
    assert rows(consumer, tenant)[0][6] == b"\xc3\x01\x00"


@pytest.mark.parametrize("column", ["recorded_at", "position", "message_key"])
def test_what_is_the_databases_a_domain_role_cannot_set(domain: Conn, tenant: str, column: str) -> None:
    value = {"recorded_at": "2020-01-01", "position": 1, "message_key": "a:b"}[column]
    with pytest.raises((errors.InsufficientPrivilege, errors.GeneratedAlways)):
        insert(domain, "platform.outbox", **{"tenant_id": tenant, **EVENT, column: value})


def test_derived_rows_carry_version_8(consumer: Conn, tenant: str) -> None:
    derived = {
        **EVENT,
        "tenant_id": tenant,
        "topic": "timers.loans",
        "key_id": "L-1",
        "occurred_at": "2026-01-01Z",
    }
    with pytest.raises(errors.CheckViolation, match="outbox_id_version"):
        insert(consumer, "platform.outbox", **derived)
    event_id = new_id(consumer)
    insert(consumer, "platform.outbox", **{**derived, "event_id": f"{event_id[:14]}8{event_id[15:]}"})


def test_two_tries_at_the_same_moment_leave_one_event(
    pg_only: Stack, domain: Conn, consumer: Conn, tenant: str
) -> None:
    event = {"tenant_id": tenant, **EVENT, "event_id": new_id(domain)}
    outcomes: list[str] = []

    def second_try() -> None:
        with psycopg.connect(pg_only.domain_dsn) as conn:
            try:
                insert(conn, "platform.outbox", **event)
                outcomes.append("nothing")
            except errors.UniqueViolation:
                outcomes.append("collision")

    with domain.transaction():
        insert(domain, "platform.outbox", **event)
        racing = Thread(target=second_try)
        racing.start()
        racing.join(0.2)
    racing.join()
    assert outcomes in (["collision"], ["nothing"])
    assert insert(domain, "platform.outbox", **event) == 0
    assert len(rows(consumer, tenant)) == 1


def test_a_copy_that_would_pass_the_policies_by_is_refused(domain: Conn) -> None:
    with pytest.raises(errors.FeatureNotSupported, match="row-level security"), domain.cursor() as cursor:  # noqa: SIM117
        with cursor.copy(
            "COPY platform.outbox (tenant_id, product, subject_id, event_type, payload) FROM STDIN"
        ):
            pass


def test_on_conflict_works_for_whoever_is_used_to_it(domain: Conn, consumer: Conn, tenant: str) -> None:
    event = {"tenant_id": tenant, "event_id": new_id(domain)}
    for _ in range(2):
        domain.execute(
            "INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, payload)"
            " VALUES (%(event_id)s, %(tenant_id)s, 'loans', 'L-1', 'loans.initiated', '{}')"
            " ON CONFLICT (event_id, tenant_id) DO NOTHING",
            event,
        )
    assert len(rows(consumer, tenant)) == 1


def test_one_id_for_two_tenants_is_two_events(domain: Conn, consumer: Conn, owner: Conn, tenant: str) -> None:
    other = tenants.create(owner, f"{tenant[:20]}-two", roles=["loans_service"]).tenant_id
    event_id = new_id(domain)
    for name, payload in ((tenant, b"{}"), (other, b'{"a": 1}')):
        insert(
            domain,
            "platform.outbox",
            **{**EVENT, "tenant_id": name, "event_id": event_id, "payload": payload},
        )
    assert [row[0] for row in rows(consumer, tenant) + rows(consumer, other)] == [event_id] * 2


def test_the_owner_is_asked_the_same(owner: Conn, tenant: str) -> None:
    refused("TO001", "unknown", insert, owner, "platform.outbox", **{**EVENT, "tenant_id": "nobody"})
    refused(
        "TO002",
        "registered",
        insert,
        owner,
        "platform.outbox",
        **{**EVENT, "tenant_id": tenant, "product": "x"},
    )
    assert insert(owner, "platform.outbox", **{**EVENT, "tenant_id": tenant}) == 1


def test_resend_gives_a_new_position_and_keeps_the_rest(consumer: Conn, domain: Conn, tenant: str) -> None:
    for subject in ("L-1", "L-2", "L-1"):
        insert(domain, "platform.outbox", **{"tenant_id": tenant, **EVENT, "subject_id": subject})
    before = rows(consumer, tenant)
    recorded = consumer.execute(
        "SELECT max(recorded_at) FROM platform.outbox WHERE tenant_id = %s", [tenant]
    ).fetchone()
    ids = [row[0] for row in reversed(before)]
    sent = consumer.execute(
        "SELECT platform.resend(%s::uuid[], %s::text[])", [[*ids, new_id(consumer)], [tenant] * 4]
    ).fetchone()
    assert sent == (3,)
    after = rows(consumer, tenant)
    assert [row[:-1] for row in after] == [row[:-1] for row in before], (
        "in the old order, whatever order was asked for"
    )
    assert after[0][-1] > before[-1][-1]
    again = consumer.execute(
        "SELECT max(recorded_at) FROM platform.outbox WHERE tenant_id = %s", [tenant]
    ).fetchone()
    assert again == recorded


def test_a_domain_role_cannot_resend(domain: Conn) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        domain.execute("SELECT platform.resend('{}', '{}')")


def refused(code: str, message: str | None, act: Callable[..., object], *args: Any, **given: Any) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        act(*args, **given)
    assert caught.value.sqlstate == code
