"""OpenTelemetry traces, set up once per process; without an endpoint there are none, and nobody does anything for them.

A trace joins a domain's commit to the provider's call. Its thread is the `traceparent` in the event's outbox row, which
timer records, announcements and frozen bodies carry on unchanged, so that every later span is a child of the append
however long after it comes, and whichever process dies in between. `tracestate` is not carried.

`OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) turns it on, by OTLP over HTTP with protobuf; the SDK reads its
other variables itself: headers, compression, samplers, resource attributes. An application that appends to the outbox
under an SDK of its own needs nothing of this: its provider is used.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NoOpTracerProvider,
    ProxyTracerProvider,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

NAME = "tellonce"
"""The instrumentation's name, and the namespace of its services."""
FLUSH_WITHIN_S = 5.0
"""What a process that stops gives its collector to take the last spans; one that is away must not hold it up."""
QUEUE = 16_384
"""Spans that wait for export: eight batches of a group. More are dropped, and the SDK says so."""


class Work(StrEnum):
    """What a span is about; its name is this and the event type, group, product or channel."""

    APPEND = "append"
    """The domain's statement. Its context is what the outbox keeps."""
    DECIDE = "decide"
    """A group's transaction; one span for each event that it decided."""
    FIRE = "fire"
    """The clock's transaction; one span for each nudge that became pending."""
    CLAIM = "claim"
    """A delivery's re-check; the verdict says whether it goes out."""
    SEND = "send"
    """The provider's call. Its context is on the request."""
    RECORD = "record"
    """What the provider answered, written down."""


class Attribute(StrEnum):
    """What spans say. Never an address, a name or a body."""

    TENANT = "tellonce.tenant"
    GROUP = "tellonce.group"
    EVENT_ID = "tellonce.event_id"
    EVENT_TYPE = "tellonce.event_type"
    EVENTS = "tellonce.events"
    """How many were appended together."""
    NUDGE_ID = "tellonce.nudge_id"
    CANCELLED_NUDGE_ID = "tellonce.cancelled_nudge_id"
    DELIVERY_ID = "tellonce.delivery_id"
    ACCOUNT = "tellonce.account"
    ATTEMPT = "tellonce.attempt"
    OUTCOME = "tellonce.outcome"
    REASON = "tellonce.reason"
    STATUS = "tellonce.status"
    """As the provider's protocol counts."""


Said = Mapping[Attribute, str | int | None]
"""Attributes; what is None is left out."""

_propagator = TraceContextTextMapPropagator()
_own: Tracer | None = None


def tracer() -> Tracer | None:
    """What records this process's spans; None while nothing does, and then there is nothing to do for it.

    Ask once per batch, call or process, not per event.
    """
    if _own is not None:
        return _own
    provider = trace.get_tracer_provider()
    return (
        None if isinstance(provider, ProxyTracerProvider | NoOpTracerProvider) else provider.get_tracer(NAME)
    )


@contextmanager
def exporting(service: str) -> Iterator[None]:
    """Inside, this process exports its spans as `service` if an endpoint is set; leaving flushes them.

    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over `service`.
    """
    if not _is_wanted():
        yield
        return
    # Here and not above: a fifth of a second that only those pay who export.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = Resource.create({"service.name": service, "service.namespace": NAME})
    provider = TracerProvider(resource=named.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    queue = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else QUEUE
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=queue))
    try:
        with recording(provider):
            yield
    finally:
        flush = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        flush.start()
        flush.join(FLUSH_WITHIN_S)


@contextmanager
def recording(provider: trace.TracerProvider) -> Iterator[None]:
    """Inside, this process's spans go to `provider`. Not nested: a process has one."""
    global _own
    _own = provider.get_tracer(NAME)
    try:
        yield
    finally:
        _own = None


def current_traceparent() -> str | None:
    """The context in which this code runs, as W3C `traceparent`; None where there is none."""
    return traceparent_of(trace.get_current_span())


def traceparent_of(span: Span) -> str | None:
    """A span's context as W3C `traceparent`."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def carried(traceparent: str | None) -> Context:
    """The context that a record carries, to be a span's parent; an empty one where it carries none that is valid."""
    return _propagator.extract({"traceparent": traceparent} if traceparent else {}, context=Context())


def around(tracer: Tracer, name: str, kind: SpanKind, said: Said) -> AbstractContextManager[Span]:
    """A span around what is done inside, child of the current one and current itself; what is raised is its error."""
    return tracer.start_as_current_span(name, kind=kind, attributes=_attributes(said))


def begin(tracer: Tracer, name: str, parent: str | None, kind: SpanKind, said: Said) -> Span:
    """A span from now on, child of `parent`; the caller ends it."""
    return tracer.start_span(name, carried(parent), kind, attributes=_attributes(said))


def told(
    tracer: Tracer,
    name: str,
    parent: str | None,
    kind: SpanKind,
    said: Said,
    seconds: float,
    error: str | None = None,
) -> None:
    """A span of what has just been committed, having taken so long; `error` says that it is a failure, and which."""
    ended = time.time_ns()
    span = tracer.start_span(
        name, carried(parent), kind, attributes=_attributes(said), start_time=ended - int(seconds * 1e9)
    )
    if error is not None:
        span.set_status(Status(StatusCode.ERROR, error))
    span.end(ended)


def say(span: Span, said: Said) -> None:
    """Further attributes of a span that has not ended."""
    span.set_attributes(_attributes(said))


def _attributes(said: Said) -> dict[str, str | int]:
    return {name.value: value for name, value in said.items() if value is not None}


def _is_wanted() -> bool:
    given = os.environ.get
    endpoint = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or given("OTEL_EXPORTER_OTLP_ENDPOINT")
    is_off = given("OTEL_SDK_DISABLED", "").lower() == "true" or given("OTEL_TRACES_EXPORTER") == "none"
    return bool(endpoint) and not is_off
