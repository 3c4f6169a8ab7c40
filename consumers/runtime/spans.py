"""What a trace says of a committed batch: one span for each event that was decided, nothing for what was skipped.

Written once it has been committed: a batch that was rolled back and tried again is in the trace once, as in the
database.
"""

from __future__ import annotations

from opentelemetry.trace import SpanKind, Tracer

from connectors.tracing import Attribute, Work, told
from consumers.runtime.batch import Committed
from consumers.runtime.records import Record
from schemas.states import DecisionOutcome


def decided(tracer: Tracer, group: str, committed: Committed, seconds: float) -> None:
    """The batch's decisions and dead letters, each in the trace of its event; the batch took `seconds`."""
    name = f"{Work.DECIDE} {group}"
    for decision in committed.decisions:
        event = decision.event
        told(
            tracer,
            name,
            event.traceparent,
            SpanKind.CONSUMER,
            {
                Attribute.GROUP: group,
                Attribute.TENANT: event.tenant_id,
                Attribute.EVENT_ID: event.event_id,
                Attribute.EVENT_TYPE: event.event_type,
                Attribute.OUTCOME: decision.outcome.value,
                Attribute.REASON: decision.reason,
                Attribute.NUDGE_ID: decision.nudge_id,
                Attribute.CANCELLED_NUDGE_ID: decision.cancelled_nudge_id,
            },
            seconds,
        )
    for dead in committed.dead:
        told(
            tracer,
            name,
            carried_by(dead.record),
            SpanKind.CONSUMER,
            {
                Attribute.GROUP: group,
                Attribute.TENANT: dead.tenant_id,
                Attribute.EVENT_ID: dead.event_id,
                Attribute.EVENT_TYPE: dead.event_type,
                Attribute.OUTCOME: DecisionOutcome.DEAD_LETTER.value,
                Attribute.REASON: dead.reason.value,
            },
            seconds,
            error=dead.reason.value,
        )


def carried_by(record: Record) -> str | None:
    """The `traceparent` of a record that may not have decoded."""
    for name, value in reversed(record.headers):
        if name == "traceparent" and value is not None:
            return value.decode("ascii", "ignore")
    return None
