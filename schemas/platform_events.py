"""Records that the platform writes to topics of its own: their types, ids, payloads and contracts, in one place.

What is told is small: an id. The row it names holds the truth, which may have moved on before anyone reads the
record. An id derives from the cause, so saying it again is saying the same; the payload's keys are in order, so
the same record has the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from schemas import avro
from schemas.codec import EventContract
from schemas.ids import derived_id

NUDGE_DUE: Final = "tellonce.nudge_due"
"""On `timers.<product>`, keyed by the subject: a nudge has become pending. Its time is when the nudge was due."""

DELIVERY_READY: Final = "tellonce.delivery_ready"
"""On `deliveries.<channel>`, keyed by the subject, for `inapp` by the user: a delivery waits to be claimed."""


class PlatformRecord(NamedTuple):
    """What is particular to one record; topic, key and headers follow from where it is written."""

    event_id: str
    payload: bytes


def timers_topic(product: str) -> str:
    """Where a product's timers are told."""
    return f"timers.{product}"


def nudge_due(cause_event_id: str, tenant_id: str, nudge_id: str) -> PlatformRecord:
    """That the nudge an event armed is due."""
    return PlatformRecord(
        derived_id(cause_event_id, tenant_id, "due", nudge_id), _named("nudge_id", nudge_id)
    )


def deliveries_topic(channel: str) -> str:
    """Where a channel's deliveries are told, of all products."""
    return f"deliveries.{channel}"


def delivery_ready(cause_event_id: str, tenant_id: str, delivery_id: str) -> PlatformRecord:
    """That a delivery, prepared because of an event, waits to be claimed."""
    return PlatformRecord(
        derived_id(cause_event_id, tenant_id, "ready", delivery_id), _named("delivery_id", delivery_id)
    )


def _contract(event_type: str, field: str) -> Mapping[str, EventContract]:
    namespace, name = event_type.split(".")
    schema = {
        "type": "record",
        "namespace": namespace,
        "name": name,
        "fields": [{"name": field, "type": "string"}],
    }
    return MappingProxyType(
        {event_type: EventContract(event_type, schema, avro.Writers(avro.parse(schema), {}))}
    )


TIMER_EVENTS: Final = _contract(NUDGE_DUE, "nudge_id")
"""What is on `timers.<product>`, by type."""
DELIVERY_EVENTS: Final = _contract(DELIVERY_READY, "delivery_id")
"""What is on `deliveries.<channel>`, by type."""


def _named(key: str, value: str) -> bytes:
    return json.dumps({key: value}, separators=(",", ":")).encode()
