"""The domain's side in Python: append events inside the transaction that changes the business rows.

```python
with conn.transaction():
    conn.execute("UPDATE loan SET state = 'submitted' WHERE …")
    outbox.append(conn, tenant_id="acme", product="loans", subject_id="L-1",
                  event_type="loans.offer_submitted", payload={"offer": "O-7"})
```
The transaction commits and everybody who should be told is told; it rolls back and nothing happened. Works
with any psycopg connection: given an `AsyncConnection`, the same functions return awaitables.

A refused event raises one of the classes below and leaves the transaction aborted, as any database error
does: roll back, or append inside `conn.transaction()` (a savepoint) to go on without it.

Whoever is told of an event is told in the trace in which it was appended: an OpenTelemetry context is taken up by
itself, and where an SDK records, the append is a span of it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack, overload
from uuid import UUID

from opentelemetry.trace import Span, SpanKind, Tracer
from psycopg import AsyncConnection, Connection, DatabaseError
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from connectors import tracing
from connectors.postgres import sql
from connectors.postgres.errors import Refusal, message, refusal

_QUERIES = sql.load("producers", "outbox.sql")

JSON = "application/json"
AVRO = "avro/binary"
"""Avro in single-object encoding, or framed by a schema registry; the bytes themselves say which."""


class OutboxError(Exception):
    """An event was not appended. The message says why and what to do; nothing of it was recorded."""


class NotInTransactionError(OutboxError):
    """The connection is in autocommit and outside a transaction: event and cause would commit apart."""


class UnknownTenantError(OutboxError):
    """The tenant does not exist or is not granted to this role; which of the two is not told."""


class UnknownProductError(OutboxError):
    """The product is not registered with this installation."""


class InvalidEventError(OutboxError):
    """Subject, id, type, topic or instant are not what an event has."""


class MalformedPayloadError(OutboxError):
    """The payload claims to be JSON and is not a JSON object, or holds what JSON cannot say."""


class PayloadTooLargeError(OutboxError):
    """The payload is over the installation's limit."""


class EventConflictError(OutboxError):
    """The event id is recorded already with other content. An event never changes."""


_ERRORS: Mapping[Refusal, type[OutboxError]] = {
    Refusal.UNKNOWN_TENANT: UnknownTenantError,
    Refusal.UNKNOWN_PRODUCT: UnknownProductError,
    Refusal.FOREIGN_TOPIC: InvalidEventError,
    Refusal.INVALID_SUBJECT: InvalidEventError,
    Refusal.INVALID_EVENT_ID: InvalidEventError,
    Refusal.INVALID_ATTRIBUTE: InvalidEventError,
    Refusal.PAYLOAD_TOO_LARGE: PayloadTooLargeError,
    Refusal.MALFORMED_PAYLOAD: MalformedPayloadError,
    Refusal.EVENT_CONFLICT: EventConflictError,
}


class EventFields(TypedDict, total=False):
    """The keywords of `append`; those of `NewEvent`."""

    tenant_id: str
    product: str
    subject_id: str
    event_type: str
    payload: Mapping[str, object] | bytes
    content_type: str
    occurred_at: datetime | None
    event_id: str | None
    traceparent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to append.

    `payload`: a mapping becomes JSON; bytes go as they are and name their format in `content_type`.
    `occurred_at`: aware; None is the database's now. A service whose time can be moved passes it.
    `event_id`: a UUIDv7; give one of your own to make a retried transaction change nothing, else it gets one.
    `traceparent`: W3C trace context, carried along to whoever is told; None is the one it is appended in, if any.
    """

    tenant_id: str
    product: str
    subject_id: str
    event_type: str
    payload: Mapping[str, object] | bytes
    content_type: str = JSON
    occurred_at: datetime | None = None
    event_id: str | None = None
    traceparent: str | None = None

    def parameters(self) -> dict[str, Any]:
        """What the statement is given; raises for what can be told without asking the database."""
        if self.occurred_at is not None and self.occurred_at.tzinfo is None:
            raise InvalidEventError(f"occurred_at {self.occurred_at.isoformat()} has no time zone")
        return {
            "event_id": self._id(),
            "tenant_id": self.tenant_id,
            "product": self.product,
            "subject_id": self.subject_id,
            "event_type": self.event_type,
            "content_type": self.content_type,
            "payload": self._body(),
            "occurred_at": self.occurred_at,
            "traceparent": self.traceparent,
        }

    def _id(self) -> str | None:
        try:
            return None if self.event_id is None else str(UUID(self.event_id))
        except ValueError as error:
            raise InvalidEventError(f"event_id {self.event_id!r} is no UUID") from error

    def _body(self) -> bytes:
        if isinstance(self.payload, bytes):
            return self.payload
        if self.content_type != JSON:
            raise MalformedPayloadError(f"a mapping becomes {JSON}; {self.content_type} is for bytes")
        try:
            return json.dumps(
                dict(self.payload), ensure_ascii=False, allow_nan=False, separators=(",", ":")
            ).encode()
        except (TypeError, ValueError) as error:
            raise MalformedPayloadError(f"the payload of {self.event_type} is no JSON: {error}") from error


@overload
def append(conn: Connection[Any], **fields: Unpack[EventFields]) -> str: ...
@overload
def append(conn: AsyncConnection[Any], **fields: Unpack[EventFields]) -> Awaitable[str]: ...
def append(
    conn: Connection[Any] | AsyncConnection[Any], **fields: Unpack[EventFields]
) -> str | Awaitable[str]:
    """Append one event in the connection's transaction; returns its id.

    The same `event_id` with the same content again changes nothing and returns the id; with other content
    it raises `EventConflictError`. Raises `OutboxError` and its kinds; errors of the database itself pass
    as they are.
    """
    event = NewEvent(**fields)  # a missing keyword is its own TypeError
    if isinstance(conn, AsyncConnection):
        return _first(_append_async(conn, [event]))
    return _append(conn, [event])[0]


@overload
def append_many(conn: Connection[Any], events: Iterable[NewEvent]) -> list[str]: ...
@overload
def append_many(conn: AsyncConnection[Any], events: Iterable[NewEvent]) -> Awaitable[list[str]]: ...
def append_many(
    conn: Connection[Any] | AsyncConnection[Any], events: Iterable[NewEvent]
) -> list[str] | Awaitable[list[str]]:
    """Append events in this order by one statement; returns their ids in the same order. All of them or none.

    An id given twice in one call counts once. Otherwise as `append`.
    """
    if isinstance(conn, AsyncConnection):
        return _append_async(conn, list(events))
    return _append(conn, list(events))


@dataclass(frozen=True, slots=True)
class _Statement:
    """What to execute for some events, and how to read its rows; the same for both kinds of connection."""

    query: bytes
    parameters: Mapping[str, Any]
    given: Sequence[str | None]

    @classmethod
    def of(cls, events: Sequence[NewEvent], traceparent: str | None) -> _Statement:
        rows = [event.parameters() for event in events]
        if traceparent is not None:
            for row in rows:
                row["traceparent"] = row["traceparent"] or traceparent
        given = [row["event_id"] for row in rows]
        distinct = _distinct(rows)
        if len(distinct) == 1:
            return cls(_QUERIES.append, distinct[0], given)
        columns = {name: [row[name] for row in distinct] for name in distinct[0]} if distinct else {}
        return cls(_QUERIES.append_many, columns, given)

    def ids(self, returned: Iterable[tuple[str]]) -> list[str]:
        """Ids in the order of the events: those given, else those the database made, which come in order."""
        known = {event_id for event_id in self.given if event_id is not None}
        made = (event_id for (event_id,) in returned if event_id not in known)
        return [event_id if event_id is not None else next(made) for event_id in self.given]


def _distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without repetitions of an id: within one statement the database sees a collision, not a retry."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    kept = []
    for row in rows:
        if row["event_id"] is None:
            kept.append(row)
            continue
        earlier = first.setdefault((row["event_id"], row["tenant_id"]), row)
        if earlier is row:
            kept.append(row)
        elif any(earlier[name] != row[name] for name in _CONTENT):
            raise EventConflictError(f"event {row['event_id']} is given twice with different content")
    return kept


_CONTENT = ("product", "subject_id", "event_type", "content_type", "payload")


def _append(conn: Connection[Any], events: Sequence[NewEvent]) -> list[str]:
    tracer = tracing.tracer()
    if tracer is None:
        return _insert(conn, events, tracing.current_traceparent())
    with _span(tracer, events) as span:
        return _insert(conn, events, tracing.traceparent_of(span))


async def _append_async(conn: AsyncConnection[Any], events: Sequence[NewEvent]) -> list[str]:
    tracer = tracing.tracer()
    if tracer is None:
        return await _insert_async(conn, events, tracing.current_traceparent())
    with _span(tracer, events) as span:
        return await _insert_async(conn, events, tracing.traceparent_of(span))


def _span(tracer: Tracer, events: Sequence[NewEvent]) -> AbstractContextManager[Span]:
    """One for the statement, child of the current span; a refusal is its error."""
    types, tenants = {event.event_type for event in events}, {event.tenant_id for event in events}
    said = {
        tracing.Attribute.EVENTS: len(events),
        tracing.Attribute.EVENT_TYPE: types.pop() if len(types) == 1 else None,
        tracing.Attribute.TENANT: tenants.pop() if len(tenants) == 1 else None,
    }
    return tracing.around(tracer, tracing.Work.APPEND, SpanKind.PRODUCER, said)


def _insert(conn: Connection[Any], events: Sequence[NewEvent], traceparent: str | None) -> list[str]:
    statement = _Statement.of(events, traceparent)
    _require_transaction(conn)
    if not events:
        return []
    try:
        with conn.cursor(row_factory=tuple_row) as cursor:
            return statement.ids(cursor.execute(statement.query, statement.parameters).fetchall())
    except DatabaseError as error:
        _raise_refusal(error)
        raise


async def _insert_async(
    conn: AsyncConnection[Any], events: Sequence[NewEvent], traceparent: str | None
) -> list[str]:
    statement = _Statement.of(events, traceparent)
    _require_transaction(conn)
    if not events:
        return []
    try:
        async with conn.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(statement.query, statement.parameters)
            return statement.ids(await cursor.fetchall())
    except DatabaseError as error:
        _raise_refusal(error)
        raise


async def _first(ids: Awaitable[list[str]]) -> str:
    return (await ids)[0]


def _require_transaction(conn: Connection[Any] | AsyncConnection[Any]) -> None:
    if conn.autocommit and conn.info.transaction_status == TransactionStatus.IDLE:
        raise NotInTransactionError(
            "this connection is in autocommit: append inside `with conn.transaction():`, "
            "together with the change the event tells of"
        )


def _raise_refusal(error: DatabaseError) -> None:
    """Raises our refusal as its class; returns for any other error, which is the caller's to handle."""
    reason = refusal(error)
    if reason is not None and reason in _ERRORS:
        raise _ERRORS[reason](message(error)) from error
