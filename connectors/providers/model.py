"""What is sent and what came back, in words that no provider owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Literal, Protocol

OnUnknown = Literal["resend", "hold"]

MOST_ERROR_CHARACTERS = 300
"""Of what a provider says: enough to understand it, too little to fill a table with."""


class Outcome(StrEnum):
    """What is known after a call.

    ACCEPTED  the provider has the message
    RETRY     it has not, and may take it later
    REJECTED  it has not, and will never take this message
    UNKNOWN   cut or timed out after it may have taken it
    """

    ACCEPTED = "accepted"
    RETRY = "retry"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Message:
    """One attempt at one delivery. `content` is the frozen body, as rendered for the channel:

    email: `subject`, `text`, `html` (may be absent); whatsapp: `text`, or `template` with `name`, `language` and
    `parameters` (a list, or a mapping of named ones).
    """

    delivery_id: str
    idempotency_key: str
    """The same for every attempt, so that a provider that remembers keys acts once."""
    tenant_id: str
    kind: str
    channel: str
    address: str
    content: Mapping[str, object]
    traceparent: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call led to. `error` never holds credentials nor the message's text."""

    outcome: Outcome
    status: int | None = None
    """As the provider's protocol counts: HTTP status or SMTP reply code; None without an answer."""
    provider_ref: str | None = None
    """The provider's name for the message: what callbacks will refer to."""
    retry_after: timedelta | None = None
    error: str | None = None
    systematic: bool = False
    """It would have gone the same way with any message of the account: counts towards its breaker."""


class Adapter(Protocol):
    """One account at one provider. Belongs to the event loop that opened it."""

    @property
    def channel(self) -> str: ...

    @property
    def remembers_keys_for(self) -> timedelta:
        """How long the provider acts once per idempotency key; zero: it knows no keys."""

    @property
    def on_unknown(self) -> OnUnknown:
        """What an unknown outcome means once keys no longer protect: a possible duplicate, or a person's decision."""

    async def open(self) -> None:
        """Prepare; calls nobody yet."""

    async def close(self) -> None:
        """End all connections; calls in progress fail."""

    async def send(self, message: Message, *, timeout_s: float) -> Answer:
        """One attempt, over within `timeout_s`. Never raises for what a provider or the network does."""


def after_unknown(adapter: Adapter, since_first_attempt: timedelta) -> OnUnknown:
    """Whether a message with an unknown outcome may be sent again: while the provider remembers its key, always."""
    if since_first_attempt < adapter.remembers_keys_for:
        return "resend"
    return adapter.on_unknown


class ContentError(ValueError):
    """A frozen body or an address that no provider could take: the message is at fault, not the provider."""


def told(text: str) -> str:
    """What a provider said, on one line and of bounded length."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MOST_ERROR_CHARACTERS]
