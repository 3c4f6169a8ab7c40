"""What was said, to whom, and where it arrived: the deliveries, their attempts, and what the providers have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from psycopg import Connection

from deploy.demo.outside import Outside
from deploy.demo.sampler import QUERIES
from deploy.demo.scope import Scope


class Delivery(NamedTuple):
    """A delivery as it stands at the end."""

    delivery_id: str
    tenant_id: str
    subject_id: str
    kind: str
    user_id: str
    role: str
    channel: str
    state: str
    reason: str | None
    provider_ref: str | None
    event_id: str
    recorded_at: datetime
    """When its cause was committed; real time."""
    nudge_id: str | None
    nudge_state: str | None
    claimed_at: datetime | None
    """By the Clock."""
    shown_at: datetime | None
    """In the application; by the Clock."""
    is_retracted: bool


class Attempt(NamedTuple):
    """One call of a provider; real time."""

    number: int
    began_at: datetime
    ended_at: datetime
    outcome: str
    status: int | None
    provider_ref: str | None
    error: str | None


class Arrival(NamedTuple):
    """One visible effect at a provider."""

    channel: str
    delivery_id: str
    key: str
    reference: str
    received_at: datetime
    repeats: int


@dataclass(frozen=True, slots=True)
class Messages:
    """All of them."""

    deliveries: Sequence[Delivery]
    attempts: Mapping[str, Sequence[Attempt]]
    """By delivery, in order."""
    arrivals: Sequence[Arrival]
    counts: Mapping[str, Any]
    """What the providers counted."""
    by_id: Mapping[str, Delivery] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {each.delivery_id: each for each in self.deliveries})

    def attempt_of(self, arrival: Arrival) -> Attempt | None:
        """The call that brought it: the last that began before it was there."""
        made = [a for a in self.attempts.get(arrival.delivery_id, ()) if a.began_at <= arrival.received_at]
        return made[-1] if made else None


def gather(conn: Connection[Any], scope: Scope, outside: Outside) -> Messages:
    """Read both sides."""
    attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
    for delivery_id, *rest in conn.execute(QUERIES["attempts"], scope.parameters):
        attempts[delivery_id].append(Attempt(*rest))
    rows = conn.execute(QUERIES["deliveries"], scope.parameters)
    return Messages(
        deliveries=[Delivery(*row) for row in rows],
        attempts=attempts,
        arrivals=[
            Arrival(
                each["channel"],
                each["delivery"],
                each["key"],
                each["reference"],
                datetime.fromtimestamp(each["received_at"], UTC),
                each["repeats"],
            )
            for each in outside.arrivals()
            if each["tenant"] in scope.tenants
        ],
        counts=outside.counts(),
    )
