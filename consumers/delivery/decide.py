"""A claim, decided: may this delivery go out now? And what an answer makes of it.

Pure functions over plain data. The order of the questions matters: what has become untrue is not sent even when it
could be, and a message that cannot be sent now for a passing reason is asked about again from the start.

Two clocks: when something is *due* or *expires* is the Clock's time, which may be sped up; how long a lease holds and
how long we pause before trying again is real time, for no clock makes a provider faster. `pace` converts: so many
seconds of the Clock pass in one real second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from connectors.providers.backoff import RetryPolicy, next_attempt
from connectors.providers.model import Answer, Outcome
from schemas.states import DeliveryState, FailReason, HoldReason, SuppressReason, no_longer

LEASE = timedelta(seconds=60)
"""How long a claim holds. A worker that has not recorded by then has lost it."""
CALL_TIMEOUT = timedelta(seconds=15)
"""How long one call may take; it begins only while so much of the lease is left."""
RETRIES = RetryPolicy()
OVERTAKE_AFTER = timedelta(minutes=10)
"""A message whose predecessor was first tried so long ago goes out before it."""
LOOK_AGAIN = timedelta(milliseconds=250)
"""When to ask again whether the past is complete."""
MEND_WITHIN = timedelta(minutes=1)
"""When to try a template again that does not render: somebody has to mend it."""


class Standing(StrEnum):
    """How the nudge stands that a delivery belongs to."""

    NONE = "none"
    """It belongs to none: a lifecycle message, or an immediate step's."""
    LIVE = "live"
    TOLD = "told"
    """Sent, and the lead has not gone further since."""
    GONE = "gone"
    """Superseded, ended, restarted; or told, and the lead has gone further."""


class Candidate(NamedTuple):
    """A delivery as locked for a claim, with what is true now of everything it rests on."""

    delivery_id: str
    tenant_id: str
    state: DeliveryState
    due_at: datetime
    expires_at: datetime | None
    lease_until: datetime | None
    """In real time; None unless it is being sent."""
    standing: Standing
    is_complete: bool
    """Whether supersession has decided every event of the subject; asked for nudges only."""
    role: str
    holds_role: bool
    is_active: bool
    address: str | None
    has_account: bool
    """Whether the installation has an account at a provider for it."""
    may_resend: bool
    """Whether a message whose outcome is unknown is sent again."""
    is_blocked: bool
    """Whether an earlier one in its lane is unresolved, and was not first tried long ago."""


class Verdict(StrEnum):
    """What a claim decides."""

    SEND = "send"
    SUPPRESS = "suppress"
    EXPIRE = "expire"
    HOLD = "hold"
    """Only a person can say what should become of it; see `HoldReason`."""
    DEFER = "defer"
    """Not yet; asked again at a later instant."""
    PARK = "park"
    """Nobody has a hand free; it waits in Postgres, where tenants take turns."""
    SKIP = "skip"
    """Nothing to do: somebody has it in hand, or it has ended."""


class Claim(NamedTuple):
    """The verdict on one delivery; `reason` for what ends it, `until` (the Clock's time) for what is deferred, and what
    went wrong here as `error`.
    """

    candidate: Candidate
    verdict: Verdict
    reason: str | None = None
    until: datetime | None = None
    error: str | None = None


def claim(
    candidates: Iterable[Candidate],
    *,
    now: datetime,
    real: datetime,
    pace: float,
    take: Callable[[Candidate], bool],
) -> list[Claim]:
    """A verdict on each, in their order; `take` is asked last and says whether there is a hand free for it.

    `now` is the Clock's time, `real` the database's.
    """
    return [_claim_one(each, now, real, pace, take) for each in candidates]


def _claim_one(
    each: Candidate, now: datetime, real: datetime, pace: float, take: Callable[[Candidate], bool]
) -> Claim:
    if each.state is DeliveryState.SENDING:
        if each.lease_until is not None and each.lease_until > real:
            return Claim(each, Verdict.SKIP)
    elif each.state is not DeliveryState.QUEUED or each.due_at > now:
        return Claim(each, Verdict.SKIP)
    if each.expires_at is not None and each.expires_at <= now:
        return Claim(each, Verdict.EXPIRE, "expired")
    if each.standing is Standing.GONE:
        return Claim(each, Verdict.SUPPRESS, SuppressReason.SUPERSEDED)
    if not each.is_complete:
        return Claim(each, Verdict.DEFER, "past_incomplete", now + LOOK_AGAIN * pace)
    if not each.holds_role:
        return Claim(each, Verdict.SUPPRESS, no_longer(each.role))
    if not each.is_active:
        return Claim(each, Verdict.SUPPRESS, SuppressReason.INACTIVE)
    if not each.has_account:
        return Claim(each, Verdict.DEFER, "no_account", now + MEND_WITHIN * pace)
    if each.address is None:
        return Claim(each, Verdict.SUPPRESS, SuppressReason.NO_ADDRESS)
    if each.state is DeliveryState.SENDING and not each.may_resend:
        return Claim(each, Verdict.HOLD, HoldReason.UNKNOWN_OUTCOME)
    if each.is_blocked:
        return Claim(each, Verdict.DEFER, "in_order", now + OVERTAKE_AFTER)
    if not take(each):
        return Claim(each, Verdict.PARK)
    return Claim(each, Verdict.SEND)


def really(elapsed: timedelta, pace: float) -> timedelta:
    """How much real time so much of the Clock's has taken, at its present pace."""
    return elapsed / pace if pace > 0 else timedelta()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What becomes of a delivery after an attempt; `due_at` (the Clock's time) when it is tried again."""

    state: DeliveryState
    reason: str | None = None
    due_at: datetime | None = None


def record(
    answer: Answer,
    *,
    attempts: int,
    first_attempt_at: datetime,
    now: datetime,
    pace: float,
    may_resend: bool,
    chance: float,
) -> Recorded:
    """What an answer makes of a delivery that has been tried `attempts` times; `chance` in [0, 1) spreads retries."""
    match answer.outcome:
        case Outcome.ACCEPTED:
            return Recorded(DeliveryState.SENT)
        case Outcome.REJECTED:
            return Recorded(DeliveryState.FAILED, FailReason.REJECTED)
        case Outcome.UNKNOWN if not may_resend:
            return Recorded(DeliveryState.HELD, HoldReason.UNKNOWN_OUTCOME)
        case Outcome.RETRY | Outcome.UNKNOWN:
            due_at = next_attempt(
                RETRIES,
                attempts=attempts,
                first_attempt_at=now - really(now - first_attempt_at, pace),
                now=now,
                retry_after=answer.retry_after,
                chance=chance,
            )
            if due_at is None:
                return Recorded(DeliveryState.FAILED, FailReason.EXHAUSTED)
            return Recorded(DeliveryState.QUEUED, "retry", now + (due_at - now) * pace)


def is_cut_off(due: Sequence[tuple[str, str]], most: int, per_tenant: int) -> bool:
    """Whether more may be due than these (delivery id, tenant id), of which so many were asked for."""
    if len(due) >= most:
        return True
    return max(Counter(tenant_id for _, tenant_id in due).values(), default=0) >= per_tenant
