"""What each stage says of an event, and that the provider is told of the trace."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from queue import Queue
from types import SimpleNamespace
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from connectors import tracing
from connectors.providers.model import Answer, Message, OnUnknown, Outcome
from consumers.delivery import spans as rounds
from consumers.delivery.claim import Claimed
from consumers.delivery.decide import Claim, Verdict
from consumers.delivery.desks import Seat
from consumers.delivery.rows import Truth
from consumers.delivery.sender import Answered, Job, Sender
from consumers.runtime import spans as batches
from consumers.runtime.batch import Committed
from consumers.runtime.group import Decision
from consumers.runtime.records import Dead, Record
from schemas.states import DeadReason, DecisionOutcome
from tests.unit.consumers.events import event
from tests.unit.consumers.test_delivery import READY

TRACE_ID = "ab" * 16
TRACE = f"00-{TRACE_ID}-{'cd' * 8}-01"
MESSAGE = Message(
    "d", "d", "acme", "loans.finish_application", "whatsapp", "+49", {"text": "x"}, TRACE, attempt=2
)


class Provider:
    """Answers as told, and keeps what it was sent."""

    channel = "whatsapp"
    remembers_keys_for = timedelta()
    on_unknown: OnUnknown = "hold"

    def __init__(self, answer: Answer | None) -> None:
        self.sent: list[Message] = []
        self._answer = answer

    async def open(self) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""

    async def send(self, message: Message, *, timeout_s: float) -> Answer:
        self.sent.append(message)
        if self._answer is None:
            raise ValueError("a defect")
        return self._answer


def call(provider: Provider) -> Answered:
    """One message, through a sender's loop."""
    account = SimpleNamespace(name="main", timeout_s=1.0)
    seat = cast("Seat", SimpleNamespace(desk=SimpleNamespace(adapter=provider, account=account)))
    came: Queue[Answered] = Queue()
    with Sender([provider], came.put) as sender:
        sender.submit([Job(MESSAGE, "token", time.monotonic() + 10, seat)])
        return came.get(timeout=10)


def in_trace(span: ReadableSpan) -> bool:
    return span.parent is not None and f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" in TRACE


def said(span: ReadableSpan) -> dict[str, Any]:
    """Attributes, without the common beginning of their names."""
    return {name.removeprefix("tellonce."): value for name, value in (span.attributes or {}).items()}


def test_a_provider_is_told_of_its_call_in_the_event_s_trace(spans: InMemorySpanExporter) -> None:
    provider = Provider(Answer(Outcome.ACCEPTED, status=200))
    answered = call(provider)
    (span,) = spans.get_finished_spans()
    assert in_trace(span)
    assert provider.sent[0].traceparent == f"00-{TRACE_ID}-{span.context.span_id:016x}-01"
    assert answered.job.message == MESSAGE, "what is recorded is what was claimed"
    assert (span.name, span.status.is_ok) == ("send whatsapp", True)
    assert said(span) == {
        "tenant": "acme",
        "delivery_id": "d",
        "attempt": 2,
        "account": "main",
        "outcome": "accepted",
        "status": 200,
    }


def test_where_nothing_records_a_provider_is_told_of_the_append() -> None:
    provider = Provider(Answer(Outcome.ACCEPTED, status=200))
    call(provider)
    assert provider.sent == [MESSAGE]


@pytest.mark.parametrize(
    ("answer", "why"),
    [(Answer(Outcome.RETRY, status=503, error="HTTP 503"), "HTTP 503"), (None, "ValueError")],
)
def test_a_call_that_failed_is_a_failed_span(
    spans: InMemorySpanExporter, answer: Answer | None, why: str
) -> None:
    call(Provider(answer))
    (span,) = spans.get_finished_spans()
    assert (span.status.is_ok, span.status.description) == (False, why)


def test_a_round_tells_its_claims_and_records(spans: InMemorySpanExporter) -> None:
    tracer = tracing.tracer()
    assert tracer is not None
    fields: Mapping[str, Any] = dict.fromkeys(Truth._fields)
    fresh = Truth(**{**fields, "traceparent": TRACE})
    again = Truth(**{**fields, "frozen_traceparent": TRACE})
    claims = [
        Claim(READY, Verdict.SUPPRESS, "superseded"),
        Claim(READY, Verdict.SKIP),
        Claim(READY, Verdict.SEND),
    ]
    answered = Answered(
        Job(MESSAGE, "token", 0.0, cast("Seat", None)), Answer(Outcome.REJECTED), began_at=0.0, ended_at=0.0
    )
    rounds.settled(
        tracer, "whatsapp", time.monotonic(), [answered], Claimed([], claims, [fresh, fresh, again])
    )
    found = spans.get_finished_spans()
    assert all(in_trace(span) for span in found)
    assert [(span.name, said(span)["outcome"]) for span in found] == [
        ("record whatsapp", "rejected"),
        ("claim whatsapp", "suppress"),
        ("claim whatsapp", "send"),
    ]
    assert said(found[1])["reason"] == "superseded"


def test_a_batch_tells_each_decided_event_and_each_dead_letter(spans: InMemorySpanExporter) -> None:
    tracer = tracing.tracer()
    assert tracer is not None
    step = event("initiated")._replace(traceparent=TRACE)
    record = Record("events.loans", 0, 7, b"k", [("traceparent", TRACE.encode()), ("ce_id", None)], b"{")
    committed = Committed(
        {},
        decisions=[Decision(step, DecisionOutcome.SCHEDULED, nudge_id="n")],
        dead=[Dead(record, DeadReason.UNDECODABLE, "no JSON", "acme", "e", "loans.initiated")],
        skipped=3,
    )
    batches.decided(tracer, "supersession.loans", committed, 0.25)
    alive, dead = spans.get_finished_spans()
    assert in_trace(alive)
    assert in_trace(dead)
    assert (alive.name, dead.name) == ("decide supersession.loans",) * 2
    assert said(alive) == {
        "group": "supersession.loans",
        "tenant": "acme",
        "event_id": step.event_id,
        "event_type": "loans.initiated",
        "outcome": "scheduled",
        "nudge_id": "n",
    }
    assert (said(dead)["outcome"], said(dead)["reason"]) == ("dead_letter", "undecodable")
    assert not dead.status.is_ok


def test_a_record_without_a_trace_carries_none() -> None:
    assert batches.carried_by(Record("t", 0, 0, None, [("traceparent", None)], None)) is None
    assert batches.carried_by(Record("t", 0, 0, None, [], None)) is None
