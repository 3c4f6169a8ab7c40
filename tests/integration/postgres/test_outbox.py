"""`producers.outbox`: the same from a sync and an async connection, in the caller's transaction."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from deploy.local.stack import Stack
from producers import outbox, tenants
from producers.outbox import NewEvent
from tests.integration.postgres.conftest import Conn, Connect

AppendMany = Callable[[Iterable[NewEvent]], list[str]]


@pytest.fixture(params=["sync", "async"])
def append_many(request: pytest.FixtureRequest, pg_only: Stack) -> AppendMany:
    """Appends in one transaction of its own: by `append` when it is one event, else by `append_many`."""

    def sync(events: Iterable[NewEvent]) -> list[str]:
        with psycopg.connect(pg_only.domain_dsn) as conn:
            given = list(events)
            return (
                [outbox.append(conn, **fields(given[0]))]
                if len(given) == 1
                else outbox.append_many(conn, given)
            )

    async def asynchronous(events: Iterable[NewEvent]) -> list[str]:
        async with await psycopg.AsyncConnection.connect(pg_only.domain_dsn) as conn:
            given = list(events)
            if len(given) == 1:
                return [await outbox.append(conn, **fields(given[0]))]
            return await outbox.append_many(conn, given)

    return sync if request.param == "sync" else lambda events: asyncio.run(asynchronous(events))


def fields(event: NewEvent) -> Any:
    return {name: getattr(event, name) for name in NewEvent.__dataclass_fields__}


def event(tenant: str, **given: Any) -> NewEvent:
    default = {
        "product": "loans",
        "subject_id": "L-1",
        "event_type": "loans.initiated",
        "payload": {"amount": 1},
    }
    return NewEvent(**{"tenant_id": tenant, **default, **given})


def stored(conn: Conn, tenant: str) -> list[tuple[Any, ...]]:
    return conn.execute(
        "SELECT event_id::text, subject_id, payload FROM platform.outbox"
        " WHERE tenant_id = %s ORDER BY position",
        [tenant],
    ).fetchall()


def new_id(conn: Conn) -> str:
    return str((conn.execute("SELECT uuidv7()").fetchone() or [""])[0])


def test_one_event(append_many: AppendMany, consumer: Conn, tenant: str) -> None:
    given = event(
        tenant,
        payload={"name": "Zoë", "changed": {"stage": ["a", "b"]}},
        occurred_at=datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    [event_id] = append_many([given])
    [row] = consumer.execute(
        "SELECT event_id::text, product, subject_id, event_type, content_type, payload, occurred_at,"
        " traceparent FROM platform.outbox WHERE tenant_id = %s",
        [tenant],
    ).fetchall()
    assert row[:5] == (event_id, "loans", "L-1", "loans.initiated", "application/json")
    assert json.loads(row[5]) == given.payload
    assert row[6] == datetime(2026, 3, 1, 6, 30, tzinfo=UTC)
    assert row[7] == given.traceparent


def test_many_in_their_order_with_their_ids(append_many: AppendMany, consumer: Conn, tenant: str) -> None:
    own = [new_id(consumer), None, None, new_id(consumer), None]
    ids = append_many(event(tenant, subject_id=f"L-{n}", event_id=given) for n, given in enumerate(own * 20)
                      if given is None or n < 5)  # fmt: skip
    rows = stored(consumer, tenant)
    assert [row[0] for row in rows] == ids
    assert [int(row[1][2:]) for row in rows] == sorted(int(row[1][2:]) for row in rows)
    assert ids[0] == own[0]
    assert ids[3] == own[3]
    assert len(set(ids)) == len(ids)


def test_none_at_all(append_many: AppendMany) -> None:
    assert append_many([]) == []


def test_a_retried_transaction_changes_nothing(append_many: AppendMany, consumer: Conn, tenant: str) -> None:
    events = [event(tenant, subject_id=f"L-{n}", event_id=new_id(consumer)) for n in range(3)]
    ids = append_many(events)
    before = stored(consumer, tenant)
    assert append_many(events) == ids
    assert append_many([events[1]]) == [ids[1]]
    mixed = append_many([events[0], event(tenant, subject_id="L-9"), events[2]])
    assert [mixed[0], mixed[2]] == [ids[0], ids[2]]
    assert stored(consumer, tenant) == [*before, (mixed[1], "L-9", b'{"amount":1}')]


def test_an_id_twice_in_one_call_counts_once(append_many: AppendMany, consumer: Conn, tenant: str) -> None:
    twice = event(tenant, event_id=new_id(consumer).upper())
    ids = append_many([twice, event(tenant, subject_id="L-2"), twice])
    assert ids[0] == ids[2] == str(twice.event_id).lower()
    assert len(stored(consumer, tenant)) == 2
    with pytest.raises(outbox.EventConflictError, match="given twice"):
        append_many([twice, event(tenant, event_id=twice.event_id, payload={"amount": 2})])


def test_bytes_name_their_format(append_many: AppendMany, consumer: Conn, tenant: str) -> None:
    append_many([event(tenant, payload=b"\xc3\x01\x00", content_type=outbox.AVRO)])
    assert stored(consumer, tenant)[0][2] == b"\xc3\x01\x00"


REFUSED: list[tuple[type[outbox.OutboxError], str, dict[str, Any]]] = [
    (outbox.UnknownTenantError, "unknown, or not granted", {"tenant_id": "nobody"}),
    (outbox.UnknownProductError, "not registered", {"product": "nope"}),
    (outbox.InvalidEventError, "no subject id", {"subject_id": "a:b"}),
    (outbox.InvalidEventError, "not a UUID version 7", {"event_id": str(uuid.uuid4())}),
    (outbox.InvalidEventError, "is no UUID", {"event_id": "1"}),
    (outbox.InvalidEventError, "event_type has", {"event_type": ""}),
    (outbox.InvalidEventError, "no time zone", {"occurred_at": datetime(2026, 1, 1)}),  # noqa: DTZ001
    (outbox.PayloadTooLargeError, "over the limit", {"payload": {"a": "x" * 300_000}}),
    (outbox.MalformedPayloadError, "not a JSON object", {"payload": b"[]"}),
    (outbox.MalformedPayloadError, "is no JSON", {"payload": {"a": float("nan")}}),
    (outbox.MalformedPayloadError, "is no JSON", {"payload": {"a": object()}}),
    (outbox.MalformedPayloadError, "is for bytes", {"content_type": "avro/binary"}),
]


@pytest.mark.parametrize(("kind", "message", "given"), REFUSED, ids=[message for _, message, _ in REFUSED])
def test_refused(
    append_many: AppendMany,
    consumer: Conn,
    tenant: str,
    kind: type[outbox.OutboxError],
    message: str,
    given: dict[str, Any],
) -> None:
    with pytest.raises(kind, match=message):
        append_many([event(tenant, **given)])
    with pytest.raises(kind, match=message):
        append_many([event(tenant), event(tenant, **given)])
    assert stored(consumer, tenant) == [], "all or none"


def test_the_same_id_with_other_content_is_refused(
    append_many: AppendMany, consumer: Conn, tenant: str
) -> None:
    first = event(tenant, event_id=new_id(consumer))
    append_many([first])
    with pytest.raises(outbox.EventConflictError, match="An event never changes"):
        append_many([event(tenant, event_id=first.event_id, payload={"amount": 2})])


def test_it_commits_and_rolls_back_with_the_business_row(domain: Conn, consumer: Conn, tenant: str) -> None:
    with domain.transaction(force_rollback=True):
        outbox.append_many(domain, [event(tenant)])
    assert stored(consumer, tenant) == []
    with domain.transaction():
        with pytest.raises(outbox.UnknownProductError), domain.transaction():
            outbox.append_many(domain, [event(tenant, product="nope")])
        outbox.append_many(domain, [event(tenant)])
    assert len(stored(consumer, tenant)) == 1


def test_outside_a_transaction_it_is_refused(pg_only: Stack, domain: Conn, tenant: str) -> None:
    with pytest.raises(outbox.NotInTransactionError):
        outbox.append_many(domain, [event(tenant)])

    async def asynchronous() -> None:
        async with await psycopg.AsyncConnection.connect(pg_only.domain_dsn, autocommit=True) as conn:
            await outbox.append_many(conn, [event(tenant)])

    with pytest.raises(outbox.NotInTransactionError):
        asyncio.run(asynchronous())


def test_other_errors_of_the_database_pass_unchanged(connect: Connect, pg_only: Stack, tenant: str) -> None:
    with psycopg.connect(pg_only.analyst_dsn) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        outbox.append_many(conn, [event(tenant)])


def test_rows_of_any_shape_in_the_callers_cursors(pg_only: Stack, consumer: Conn, tenant: str) -> None:
    with psycopg.connect(pg_only.domain_dsn, row_factory=psycopg.rows.dict_row) as conn:
        event_id = outbox.append(conn, **fields(event(tenant)))
    assert stored(consumer, tenant)[0][0] == event_id


def test_a_suspended_or_held_tenants_events_are_accepted(
    append_many: AppendMany, owner: Conn, tenant: str
) -> None:
    tenants.suspend(owner, tenant)
    tenants.hold(owner, tenant)
    assert len(append_many([event(tenant)])) == 1
