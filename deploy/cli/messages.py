"""Notifications, deliveries and attempts as they were read, and what became of a message in words: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from deploy.cli.output import moment
from schemas.states import DeliveryState, FailReason, HoldReason, SuppressReason, no_longer


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a provider and its answer. Its instants are real time."""

    delivery_id: str
    attempt: int
    began_at: datetime
    ended_at: datetime
    outcome: str
    status: int | None
    provider_ref: str | None
    error: str | None
    latency_ms: int | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one recipient on one channel. Without `user_id` when that is an address."""

    delivery_id: str
    tenant_id: str
    product: str
    subject_id: str
    kind: str
    user_id: str | None
    role: str
    channel: str
    account: str | None
    state: str
    reason: str | None
    due_at: datetime
    expires_at: datetime | None
    lease_until: datetime | None
    attempts: int
    first_attempt_at: datetime | None
    provider_ref: str | None
    notification_id: str
    nudge_id: str | None
    event_id: str
    lane: str
    seq: int
    created_at: datetime
    updated_at: datetime
    error: str | None = None
    """What went wrong here, at its last claim or record."""


@dataclass(frozen=True, slots=True)
class Message:
    """A delivery with its attempts; `words` says in a sentence what became of it."""

    delivery: Delivery
    words: str
    attempts: list[Attempt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Notice:
    """One person who should know: a line of query `notices`."""

    notification_id: str
    event_id: str
    nudge_id: str | None
    kind: str
    user_id: str | None
    role: str
    locale: str
    zone: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Notified:
    """One person who should know, and each message to them."""

    notice: Notice
    messages: list[Message] = field(default_factory=list)


WAITING: Mapping[str, str] = {
    "retry": "to be tried again",
    "past_incomplete": "waits until every event before it is decided",
    "in_order": "waits for an earlier message to the same person",
    "no_account": "waits for an account at a provider: there is none for its channel",
    "template_failed": "waits for its template to be mended: it does not render",
}
"""Why a claim put a delivery back into the queue."""
SUPPRESSED: Mapping[str, str] = {
    SuppressReason.SUPERSEDED: "superseded before it went out",
    SuppressReason.INACTIVE: "the person is not active any more",
    SuppressReason.NO_ADDRESS: "the person has no address on this channel any more",
    SuppressReason.CANCELLED: "an operator cancelled it",
}
FAILED: Mapping[str, str] = {
    FailReason.REJECTED: "the provider refused it",
    FailReason.EXHAUSTED: "tried as often or as long as is allowed",
}
HELD: Mapping[str, str] = {
    HoldReason.UNKNOWN_OUTCOME: "it may have gone out, and the provider would not know it again",
    HoldReason.POISON: "it fails whatever is tried",
}


def by_notice(notices: Iterable[Notice], messages: Iterable[Message]) -> list[Notified]:
    """Each notice, in the order given, with its messages in the order of their preparation."""
    made: dict[str, list[Message]] = {}
    for each in sorted(messages, key=lambda message: message.delivery.seq):
        made.setdefault(each.delivery.notification_id, []).append(each)
    return [Notified(each, made.get(each.notification_id, [])) for each in notices]


def with_attempts(deliveries: Iterable[Delivery], attempts: Iterable[Attempt]) -> list[Message]:
    """Each delivery, in the order given, with its attempts in theirs."""
    made: dict[str, list[Attempt]] = {}
    for each in attempts:
        made.setdefault(each.delivery_id, []).append(each)
    return [
        Message(each, in_words(each, of_it := made.get(each.delivery_id, [])), of_it) for each in deliveries
    ]


def to_whom(user_id: str | None, role: str) -> str:
    """Whom a notice or a delivery is for; never an address."""
    return "an address" if user_id is None else f"{role} {user_id}"


def headed(message: Message) -> str:
    """What was to be told to whom and on which channel, and what became of it."""
    each = message.delivery
    return f"{each.kind} to {to_whom(each.user_id, each.role)} on {each.channel}: {message.words}"


def in_words(delivery: Delivery, attempts: list[Attempt]) -> str:
    """What became of a delivery, as a sentence without its full stop; ends with the last answer, if any."""
    state, reason = DeliveryState(delivery.state), delivery.reason or ""
    last = answered(attempts[-1]) if attempts else ""
    match state:
        case DeliveryState.QUEUED:
            why = WAITING.get(reason, reason)
            said = (
                f"{why}, due {moment(delivery.due_at)}" if why else f"queued, due {moment(delivery.due_at)}"
            )
        case DeliveryState.SENDING:
            said = "being sent"
        case DeliveryState.SENT:
            ref = f" as {delivery.provider_ref}" if delivery.provider_ref else ""
            said = ("sent" if attempts or ref else "shown") + ref
        case DeliveryState.FAILED:
            said = f"failed: {FAILED.get(reason, reason)}"
        case DeliveryState.SUPPRESSED:
            lost = f"the person is no longer its {delivery.role}"
            words = {**SUPPRESSED, no_longer(delivery.role): lost}
            said = f"not sent: {words.get(reason, reason)}"
        case DeliveryState.EXPIRED:
            said = "not sent: it had expired"
        case DeliveryState.HELD:
            known = f"{HELD.get(reason, reason)}{f' ({delivery.error})' if delivery.error else ''}"
            said = f"on hold: {known}; `tellonce deliveries retry` or `cancel`"
        case _:
            assert_never(state)
    return f"{said} ({last})" if last else said


def answered(attempt: Attempt) -> str:
    """An attempt's answer: which one it was, what the provider said, how long it took."""
    said = [f"attempt {attempt.attempt}", attempt.outcome]
    if attempt.status is not None:
        said.append(f"status {attempt.status}")
    if attempt.latency_ms is not None:
        said.append(f"{attempt.latency_ms:,} ms")
    return ", ".join(said) + (f": {attempt.error}" if attempt.error else "")


def shape(content: object) -> object:
    """What a body is made of, without what it says: every text becomes its length."""
    match content:
        case Mapping():
            return {str(name): shape(value) for name, value in content.items()}
        case list():
            return [shape(value) for value in content]
        case str():
            return f"text of {len(content):,}"
        case None:
            return None
        case _:
            return type(content).__name__
