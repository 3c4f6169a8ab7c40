"""Supersession, decided: one live nudge per lead, and it is the one for the furthest step reached.

Pure functions over plain data. The rules are those of the design's *Supersession*; where they say more than
"drop what is not further than the live nudge", that is because a late event would otherwise re-arm a
reminder after the later nudge was already sent: we compare with the furthest step ever reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, assert_never

from consumers.runtime.group import Decision
from schemas.envelope import Event
from schemas.ids import derived_id
from schemas.products.model import Product, Role, Step
from schemas.states import DecisionOutcome, DropReason, NudgeReason, NudgeState


class LeadKey(NamedTuple):
    """Which lead; the product is the group's own."""

    tenant_id: str
    subject_id: str


class Lead(NamedTuple):
    """A lead's journey as loaded and locked for this batch, or as left by the batch's earlier events.

    `reached` holds the names of the steps of this epoch, in the order they were reached; their rank is
    looked up in today's list. `live` is the nudge that is scheduled or pending.
    """

    reached: tuple[str, ...] = ()
    epoch_began_at: datetime | None = None
    ended_at: datetime | None = None
    live: str | None = None


NEW = Lead()


class Nudge(NamedTuple):
    """A nudge to insert, in the state that the whole batch leaves it in."""

    nudge_id: str
    lead: LeadKey
    kind: str
    step: str
    event_id: str
    due_at: datetime
    state: NudgeState = NudgeState.SCHEDULED
    superseded_by: str | None = None
    cancelled_by: str | None = None
    reason: NudgeReason | None = None


class Cancellation(NamedTuple):
    """A nudge that was live before this batch, and why it no longer is."""

    nudge_id: str
    lead: LeadKey
    cancelled_by: str
    superseded_by: str | None
    reason: NudgeReason


@dataclass(slots=True)
class Superseded:
    """A batch, decided: one decision per event, and the state that they leave behind."""

    decisions: list[Decision] = field(default_factory=list)
    leads: dict[LeadKey, Lead] = field(default_factory=dict)
    """Leads that changed, as they are after the batch."""
    cancelled: list[Cancellation] = field(default_factory=list)
    armed: dict[str, Nudge] = field(default_factory=dict)
    """New nudges by id; one superseded within the batch is born cancelled, so that history is whole."""


def decide(product: Product, leads: Mapping[LeadKey, Lead], events: Sequence[Event]) -> Superseded:
    """Decide events in partition order; `leads` has every lead of the batch that exists already."""
    batch = Superseded()
    for event in events:
        batch.decisions.append(_decide_one(product, leads, batch, event))
    return batch


def _decide_one(product: Product, leads: Mapping[LeadKey, Lead], batch: Superseded, event: Event) -> Decision:
    role = product.role_of(event.event_type)
    match role:
        case Role.LIFECYCLE | Role.RULE_INPUT:
            return Decision(event, DecisionOutcome.LIFECYCLE)
        case Role.STEP | Role.END | Role.RESTART:
            pass
        case _:
            assert_never(role)
    key = LeadKey(event.tenant_id, event.subject_id)
    lead = batch.leads.get(key) or leads.get(key, NEW)
    if lead.epoch_began_at is not None and event.occurred_at < lead.epoch_began_at:
        return Decision(event, DecisionOutcome.DROPPED, DropReason.BEFORE_RESTART)
    if role is Role.RESTART:
        return _restart(batch, key, lead, event)
    if lead.ended_at is not None:
        return Decision(event, DecisionOutcome.DROPPED, DropReason.ENDED)
    if role is Role.END:
        return _end(batch, key, lead, event)
    return _reach(product, batch, key, lead, event)


def _reach(product: Product, batch: Superseded, key: LeadKey, lead: Lead, event: Event) -> Decision:
    """A forward step tears the live nudge down, whatever it says itself; everything else is dropped."""
    journey = product.journey
    assert journey is not None  # the type has the role of a step
    step = journey.step(event.event_type)
    if not journey.is_further(step.on, lead.reached):
        return Decision(event, DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)
    advanced = Lead((*lead.reached, step.on), lead.epoch_began_at, lead.ended_at)
    if step.retired:
        return _tear_down(batch, key, lead, advanced, event, DecisionOutcome.ADVANCED, NudgeReason.SUPERSEDED)
    if step.is_immediate:
        return _tear_down(
            batch, key, lead, advanced, event, DecisionOutcome.IMMEDIATE, NudgeReason.SUPERSEDED
        )
    nudge = _nudge(step, key, event)
    _cancel_live(batch, key, lead, event, nudge.nudge_id, NudgeReason.SUPERSEDED)
    batch.armed[nudge.nudge_id] = nudge
    batch.leads[key] = advanced._replace(live=nudge.nudge_id)
    return Decision(event, DecisionOutcome.SCHEDULED, None, nudge.nudge_id, lead.live)


def _end(batch: Superseded, key: LeadKey, lead: Lead, event: Event) -> Decision:
    ended = Lead(lead.reached, lead.epoch_began_at, event.occurred_at)
    return _tear_down(batch, key, lead, ended, event, DecisionOutcome.ENDED, NudgeReason.ENDED)


def _restart(batch: Superseded, key: LeadKey, lead: Lead, event: Event) -> Decision:
    """A new epoch: nothing reached, nothing live. What happened before it no longer counts."""
    fresh = Lead(epoch_began_at=event.occurred_at)
    return _tear_down(batch, key, lead, fresh, event, DecisionOutcome.RESTARTED, NudgeReason.RESTARTED)


def _tear_down(
    batch: Superseded,
    key: LeadKey,
    lead: Lead,
    after: Lead,
    event: Event,
    outcome: DecisionOutcome,
    reason: NudgeReason,
) -> Decision:
    """Cancel the live nudge without a successor and leave the lead as `after`, where nothing is live."""
    _cancel_live(batch, key, lead, event, None, reason)
    batch.leads[key] = after
    return Decision(event, outcome, None, None, lead.live)


def _cancel_live(
    batch: Superseded, key: LeadKey, lead: Lead, event: Event, successor: str | None, reason: NudgeReason
) -> None:
    if lead.live is None:
        return
    if born_here := batch.armed.get(lead.live):
        batch.armed[lead.live] = born_here._replace(
            state=NudgeState.CANCELLED,
            superseded_by=successor,
            cancelled_by=event.event_id,
            reason=reason,
        )
    else:
        batch.cancelled.append(Cancellation(lead.live, key, event.event_id, successor, reason))


def _nudge(step: Step, key: LeadKey, event: Event) -> Nudge:
    """Due `after` the earlier of the domain's time and ours: a clock that is ahead makes nobody wait."""
    return Nudge(
        nudge_id=derived_id(event.event_id, event.tenant_id, "nudge", step.nudge),
        lead=key,
        kind=step.nudge,
        step=step.on,
        event_id=event.event_id,
        due_at=min(event.occurred_at, event.recorded_at) + step.after,
    )
