"""The group `delivery.<channel>`: takes announcements once, in order, and hands them to the worker.

It claims nothing itself. What it commits is that the announcement has been seen; what it hands over after that is
only a reason to look, for a process that dies in between leaves a row that is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from consumers.delivery.claim import Key
from consumers.runtime.group import Decision
from consumers.runtime.tx import Tx
from schemas.envelope import Event
from schemas.products.audience import Channel
from schemas.states import DecisionOutcome


@dataclass(frozen=True, slots=True)
class Taken:
    """The announcements of a batch."""

    decisions: Sequence[Decision]
    keys: Sequence[Key]


class Delivery:
    """Stateless between batches."""

    def __init__(self, channel: Channel) -> None:
        self.name = f"delivery.{channel}"
        self.topics: Sequence[str] = (f"deliveries.{channel}",)

    def load(self, tx: Tx, events: Sequence[Event]) -> None:
        """Nothing: what is true is asked at the claim."""

    def decide(self, state: None, events: Sequence[Event]) -> Taken:
        """Each is taken. Raises `ValueError` for one that names no delivery."""
        return Taken(
            [Decision(event, DecisionOutcome.TAKEN) for event in events],
            [(str(UUID(str(event.payload["delivery_id"]))), event.tenant_id) for event in events],
        )

    def write(self, tx: Tx, decisions: Taken) -> None:
        """Nothing but the decisions, which the runtime writes."""
