"""Records that the platform writes to topics of its own: their types, ids and payloads, in one place.

What is told is small: an id. The row it names holds the truth, which may have moved on before anyone reads the
record. An id derives from the cause, so saying it again is saying the same; the payload's keys are in order, so
the same record has the same bytes.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from schemas.ids import derived_id

NUDGE_DUE: Final = "tellonce.nudge_due"
"""On `timers.<product>`, keyed by the subject: a nudge has become pending. Its time is when the nudge was due."""


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


def _named(key: str, value: str) -> bytes:
    return json.dumps({key: value}, separators=(",", ":")).encode()
