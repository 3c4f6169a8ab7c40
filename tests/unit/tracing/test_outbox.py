"""An appended event is in the trace in which it was appended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self, cast

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from psycopg import AsyncConnection, Connection

from connectors.tracing import traceparent_of
from producers.outbox import InvalidEventError, NewEvent, append, append_many

REMOTE = NonRecordingSpan(SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(1)))
"""What came with a request, in a service without an SDK."""
GIVEN = f"00-{'ab' * 16}-{'cd' * 8}-01"


class Cursor:
    def __init__(self, heard: list[Mapping[str, Any]]) -> None:
        self._heard = heard

    def execute(self, _query: bytes, values: Mapping[str, Any]) -> Self:
        self._heard.append(values)
        return self

    def fetchall(self) -> list[tuple[str]]:
        return [(str(number),) for number in range(9)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Database:
    """Hears what a connection would send."""

    autocommit = False

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []

    def cursor(self, **_: object) -> Cursor:
        return Cursor(self.heard)


class AsyncCursor(Cursor):
    async def execute(self, _query: bytes, values: Mapping[str, Any]) -> Self:  # type: ignore[override]
        return super().execute(_query, values)

    async def fetchall(self) -> list[tuple[str]]:  # type: ignore[override]
        return super().fetchall()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class AsyncDatabase(AsyncConnection[Any]):
    autocommit = False

    def __init__(self) -> None:
        self.heard: list[Mapping[str, Any]] = []

    def cursor(self, **_: object) -> AsyncCursor:  # type: ignore[override]
        return AsyncCursor(self.heard)

    def __del__(self, *_: object) -> None:
        """There is no session to close."""


def event(traceparent: str | None = None) -> NewEvent:
    return NewEvent(
        tenant_id="acme",
        product="loans",
        subject_id="L-1",
        event_type="loans.initiated",
        payload={},
        traceparent=traceparent,
    )


def told(*events: NewEvent) -> Any:
    """The `traceparent` that the database is told of these."""
    database = Database()
    append_many(cast("Connection[Any]", database), events)
    return database.heard[0]["traceparent"]


def test_without_a_trace_there_is_none() -> None:
    assert told(event()) is None
    assert told(event(), event()) == [None, None]


def test_the_context_of_the_caller_is_taken() -> None:
    with trace.use_span(REMOTE):
        assert told(event()) == traceparent_of(REMOTE)
        assert told(event(), event(GIVEN)) == [traceparent_of(REMOTE), GIVEN]


def test_what_is_given_wins(spans: InMemorySpanExporter) -> None:
    assert told(event(GIVEN)) == GIVEN


def test_where_spans_are_recorded_the_append_is_one(spans: InMemorySpanExporter) -> None:
    with trace.use_span(REMOTE):
        kept = told(event(), event())
    (span,) = spans.get_finished_spans()
    assert kept == [f"00-{7:032x}-{span.context.span_id:016x}-01"] * 2
    assert (span.name, span.parent) == ("append", REMOTE.get_span_context())
    assert span.attributes == {
        "tellonce.events": 2,
        "tellonce.event_type": "loans.initiated",
        "tellonce.tenant": "acme",
    }


def test_an_asynchronous_append_is_in_the_trace_too(spans: InMemorySpanExporter) -> None:
    database = AsyncDatabase()

    async def commit() -> None:
        with trace.use_span(REMOTE):
            await append(
                database,
                tenant_id="acme",
                product="loans",
                subject_id="L-1",
                event_type="loans.initiated",
                payload={},
            )

    asyncio.run(commit())
    (span,) = spans.get_finished_spans()
    assert database.heard[0]["traceparent"] == f"00-{7:032x}-{span.context.span_id:016x}-01"


def test_a_refused_append_is_a_failure(spans: InMemorySpanExporter) -> None:
    refused = NewEvent(
        tenant_id="a", product="loans", subject_id="L-1", event_type="x", payload={}, event_id="none"
    )
    with pytest.raises(InvalidEventError):
        told(refused)
    (span,) = spans.get_finished_spans()
    assert not span.status.is_ok
