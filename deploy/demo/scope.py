"""What the checks are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.kafka.topics import CHANNELS
from schemas.platform_events import deliveries_topic, timers_topic


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tenants' events of which product."""

    tenants: Sequence[str]
    product: str

    @property
    def group(self) -> str:
        """Who decides journeys."""
        return f"supersession.{self.product}"

    @property
    def readers(self) -> Sequence[tuple[str, str]]:
        """Which group must decide which topic."""
        return (
            (self.group, self.topic),
            (self.group, timers_topic(self.product)),
            (f"rules.{self.product}", self.topic),
            *((f"delivery.{channel}", deliveries_topic(channel)) for channel in CHANNELS),
        )

    @property
    def groups(self) -> Sequence[str]:
        """Everybody who decides anything."""
        return tuple(dict.fromkeys(group for group, _ in self.readers))

    @property
    def topic(self) -> str:
        return f"events.{self.product}"

    @property
    def parameters(self) -> dict[str, object]:
        """What the statements in `queries.sql` take."""
        return {
            "tenants": list(self.tenants),
            "product": self.product,
            "group": self.group,
            "reader_groups": [group for group, _ in self.readers],
            "reader_topics": [topic for _, topic in self.readers],
            "topic": self.topic,
        }
