"""What the checks are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.kafka.topics import CHANNELS


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
    def groups(self) -> Sequence[str]:
        """Everybody who decides anything."""
        return (self.group, f"rules.{self.product}", *(f"delivery.{channel}" for channel in CHANNELS))

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
            "groups": list(self.groups),
            "topic": self.topic,
        }
