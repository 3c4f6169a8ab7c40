"""What a trace says of a round: its claims and its records, each in the trace of the event that caused the delivery.

Written once the round has been committed. The call between the two has its span from whoever makes it (`sender.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from opentelemetry.trace import SpanKind, Tracer

from connectors.tracing import Attribute, Work, told
from consumers.delivery.claim import Claimed
from consumers.delivery.decide import Verdict
from consumers.delivery.sender import Answered, message_attributes


def settled(
    tracer: Tracer, channel: str, began: float, answered: Sequence[Answered], claimed: Claimed
) -> None:
    """A committed round, which began at `began` (`time.monotonic`)."""
    seconds = time.monotonic() - began
    for each in answered:
        outcome = None if each.answer is None else each.answer.outcome.value
        told(
            tracer,
            f"{Work.RECORD} {channel}",
            each.job.message.traceparent,
            SpanKind.INTERNAL,
            message_attributes(each.job.message) | {Attribute.OUTCOME: outcome},
            seconds,
        )
    for claim, truth in zip(claimed.claims, claimed.truths, strict=True):
        if claim.verdict is Verdict.SKIP:
            continue  # somebody else's
        told(
            tracer,
            f"{Work.CLAIM} {channel}",
            truth.frozen_traceparent or truth.traceparent,
            SpanKind.INTERNAL,
            {
                Attribute.TENANT: claim.candidate.tenant_id,
                Attribute.DELIVERY_ID: claim.candidate.delivery_id,
                Attribute.OUTCOME: claim.verdict.value,
                Attribute.REASON: claim.reason,
            },
            seconds,
        )
