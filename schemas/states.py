"""The closed vocabularies of the platform: states with their transitions, outcomes and reasons.

Every word here is stored in Postgres and shown to people; it is never renamed, only added to. The states'
transitions are enforced by the database (`schemas/sql/migrations`), the diagrams here are their reading.
"""

from __future__ import annotations

from enum import StrEnum


class TenantState(StrEnum):
    """active ◄──► suspended

    A suspended tenant's facts are still admitted and its journeys still move on, or something stale would go
    out on the day it returns; nothing fires for it meanwhile.
    """

    ACTIVE = "active"
    SUSPENDED = "suspended"


class NudgeState(StrEnum):
    """scheduled ──due, past complete──► pending ──a first delivery decides to send──► sent
        └──────────────┬────────────────┘
                       ▼ superseded, ended, restarted, nobody, kind_removed, suppressed
                   cancelled

    At most one nudge of a lead is live, which is `scheduled` or `pending`.
    """

    SCHEDULED = "scheduled"
    PENDING = "pending"
    SENT = "sent"
    CANCELLED = "cancelled"

    @property
    def is_live(self) -> bool:
        """Whether the nudge may still become a message."""
        return self in (NudgeState.SCHEDULED, NudgeState.PENDING)


class NudgeReason(StrEnum):
    """Why a nudge was cancelled."""

    SUPERSEDED = "superseded"
    """A further step was reached."""
    ENDED = "ended"
    """The journey ended."""
    RESTARTED = "restarted"
    """A new epoch of the journey began."""
    NOBODY = "nobody"
    """There was nobody to tell when it fired."""
    KIND_REMOVED = "kind_removed"
    """When it fired the product no longer had its kind."""
    SUPPRESSED = "suppressed"
    """Everybody who could have been told did not want to be."""


class DeliveryState(StrEnum):
    """queued ──claim──► sending ──accepted──► sent
      ▲  │               │ └──rejected, exhausted──► failed
      │  │               ├──re-check at the claim──► suppressed, expired
      │  │               └──unknown outcome────────► held ──operator──► queued, suppressed
      │  ├──claim or record fails alone────────────► held
      │  └──cancelled, expired before a claim──────► suppressed, expired
      └──retry, deferred─┘

    "Accepted" wins however late it comes: `queued` and `held` become `sent` too, when an attempt that was given
    up was accepted after all. An in-app message is accepted by its own row, in its claim.
    """

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"
    HELD = "held"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more will come of it by itself or by anybody; a late "accepted" aside."""
        return self in (
            DeliveryState.SENT,
            DeliveryState.FAILED,
            DeliveryState.SUPPRESSED,
            DeliveryState.EXPIRED,
        )


class SuppressReason(StrEnum):
    """Why a delivery was not sent although nothing failed; beside these, `no_longer`."""

    SUPERSEDED = "superseded"
    """The nudge it speaks for is no longer the lead's furthest."""
    INACTIVE = "inactive"
    """The person is not active any more."""
    NO_ADDRESS = "no_address"
    """The person has no address on this channel any more."""
    CANCELLED = "cancelled"
    """An operator cancelled it."""


def no_longer(role: str) -> str:
    """The reason of a delivery whose person has lost the role that they were to be told in."""
    return f"no_longer_{role}"


class FailReason(StrEnum):
    """Why a delivery failed for good."""

    REJECTED = "rejected"
    """The provider refused it."""
    EXHAUSTED = "exhausted"
    """It was tried as often or as long as is allowed."""


class HoldReason(StrEnum):
    """Why a delivery waits for an operator."""

    UNKNOWN_OUTCOME = "unknown_outcome"
    """It may have been sent, and the provider knows no key by which a second try would be the same message."""
    POISON = "poison"
    """Claiming it, or recording its answer, fails alone and twice; its `error` says how."""


class DecisionOutcome(StrEnum):
    """What a group made of one record. Every record of its topics gets exactly one."""

    SCHEDULED = "scheduled"
    """A delayed step: its nudge is armed, the live one superseded."""
    IMMEDIATE = "immediate"
    """An immediate step: the live nudge is superseded, its message prepared at once."""
    ADVANCED = "advanced"
    """A retired step: progress is noted and the live nudge superseded, nothing is said."""
    DROPPED = "dropped"
    """Nothing changed; see `DropReason`."""
    ENDED = "ended"
    """The journey ended; the live nudge is cancelled without a successor."""
    RESTARTED = "restarted"
    """A new epoch began; the live nudge is cancelled without a successor."""
    LIFECYCLE = "lifecycle"
    """An event beside the journey: it cancels nothing."""
    DEAD_LETTER = "dead_letter"
    """The record could not be decided; see `DeadReason`."""
    FIRED = "fired"
    """What it was to tell is told: a due nudge, or the kinds that name the event. Reason `nobody`: no recipient."""
    CANCELLED = "cancelled"
    """A nudge fell due and is not told: there is nobody to tell, or its kind is gone."""
    IGNORED = "ignored"
    """Nothing in this group is about such an event."""
    TAKEN = "taken"
    """A delivery has been announced to its channel; what becomes of it stands in its row."""


NOBODY = "nobody"
"""The reason of a decision whose message had no recipient: a fact, not an error."""


class DropReason(StrEnum):
    """Why an event changed nothing."""

    NOT_FURTHER = "not_further"
    """Not strictly further than the furthest step reached."""
    ENDED = "ended"
    """The journey had ended."""
    BEFORE_RESTART = "before_restart"
    """It happened before the present epoch began."""
    TOO_OLD = "too_old"
    """Recorded before the replay horizon: what it was compared with may be gone."""
    SUPERSEDED = "superseded"
    """A timer whose nudge is no longer live."""


class DeadReason(StrEnum):
    """Why a record could not be decided. The first group is what `schemas.envelope.decode` refuses."""

    MISSING_HEADER = "missing_header"
    """A header or the key that every record carries is not there."""
    MALFORMED_HEADER = "malformed_header"
    """A header is there and is not what it must be: not UTF-8, no UUID, no instant."""
    UNKNOWN_PRODUCT = "unknown_product"
    """No product of this installation has this topic."""
    UNKNOWN_TYPE = "unknown_type"
    """The product has no event of this type; a newer product may."""
    UNKNOWN_SCHEMA = "unknown_schema"
    """Avro written with a schema that is not in the product's history; a newer product's may be."""
    WRONG_PRODUCT = "wrong_product"
    """The headers say another product than the topic."""
    WRONG_TENANT = "wrong_tenant"
    """The headers say another tenant than the key."""
    WRONG_SUBJECT = "wrong_subject"
    """The headers say another subject than the key."""
    EMPTY = "empty"
    """No body: a tombstone, or a row without payload."""
    OVERSIZED = "oversized"
    """The body is over the limit."""
    UNDECODABLE = "undecodable"
    """The body is not in the form that content-type says, or in none that is known."""
    CORRUPT_AVRO = "corrupt_avro"
    """Framed as Avro of a known schema, and the bytes do not read as such."""
    SCHEMA_MISMATCH = "schema_mismatch"
    """Well-formed JSON that the event's schema refuses."""

    UNKNOWN_STEP = "unknown_step"
    """The lead has reached a step that today's journey lacks; one that is removed stays as `retired`."""
    NOT_COMMITTED = "not_committed"
    """The record's outbox row never became visible."""
    LOST = "lost"
    """Capture lost the row again and again, however often it was sent."""
    POISON = "poison"
    """It decodes, and deciding or writing it fails alone, twice."""


class DeadLetterState(StrEnum):
    """open ──retry──► retried      open ──discard──► discarded"""

    OPEN = "open"
    RETRIED = "retried"
    DISCARDED = "discarded"
