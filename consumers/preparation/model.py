"""An intent, the directory it is resolved in, and what is prepared for it. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from schemas.envelope import Event
from schemas.ids import derived_id
from schemas.products.audience import Channel

ADDRESS = "address"
"""The role of a recipient that is an address of the product's, and nobody's id."""
USER = "user"
"""The role of a user whom the product names."""


class Intent(NamedTuple):
    """Kind `kind` should be told because of event `event_id`."""

    tenant_id: str
    subject_id: str
    kind: str
    event_id: str
    """The cause; for a nudge, the event that reached its step."""
    lane: str
    """The topic of the record that fires it: order is promised within (tenant, subject, user, channel, lane)."""
    valid_from: datetime
    """What a kind's `expires_after` counts from: when it happened, or when the nudge was due."""
    payload: Mapping[str, object]
    traceparent: str | None
    nudge_id: str | None = None

    @property
    def intent_id(self) -> str:
        """A function of cause and kind: firing again is the same intent."""
        return derived_id(self.event_id, self.tenant_id, "intent", self.kind)

    @classmethod
    def of(cls, event: Event, kind: str, lane: str) -> Intent:
        """That an event's own kind, or its immediate step's, should be told at once."""
        return cls(
            event.tenant_id,
            event.subject_id,
            kind,
            event.event_id,
            lane,
            min(event.occurred_at, event.recorded_at),
            event.payload,
            event.traceparent,
        )


class Person(NamedTuple):
    """What preparation knows of a person: not where they are reached, only whether."""

    user_id: str
    is_active: bool
    locale: str
    zone: str
    has_email: bool
    has_phone: bool

    def is_reached_by(self, channel: Channel) -> bool:
        """Whether the channel has somewhere to go to."""
        match channel:
            case Channel.INAPP:
                return True
            case Channel.EMAIL:
                return self.has_email
            case Channel.WHATSAPP:
                return self.has_phone
            case _:  # no channel of this installation yet
                return False


class Holder(NamedTuple):
    """Which role on which subject somebody may have."""

    tenant_id: str
    subject_id: str
    role: str


class UserKey(NamedTuple):
    """A user of a tenant."""

    tenant_id: str
    user_id: str


@dataclass(slots=True)
class Wanted:
    """What a batch has to look up: nothing else is."""

    holders: set[Holder] = field(default_factory=set)
    people: set[UserKey] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Directory:
    """The people of a batch as they are now; who is not in it has no contact, and cannot be told."""

    holders: Mapping[Holder, Person] = field(default_factory=dict)
    people: Mapping[UserKey, Person] = field(default_factory=dict)


NOBODY_KNOWN = Directory()


class Delivery(NamedTuple):
    """One message to prepare."""

    delivery_id: str
    channel: Channel
    role: str


class Notification(NamedTuple):
    """One person who should know, and on which channels they are told."""

    notification_id: str
    user_id: str
    """For the role `ADDRESS`, the address."""
    role: str
    locale: str
    zone: str
    deliveries: tuple[Delivery, ...]


class Prepared(NamedTuple):
    """An intent, resolved."""

    intent: Intent
    expires_at: datetime | None
    notifications: tuple[Notification, ...]

    @property
    def is_for_nobody(self) -> bool:
        """Whether there was no recipient: a decision, not an error."""
        return not self.notifications
