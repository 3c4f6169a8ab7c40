"""Supersession, decided: one live nudge per lead, and it is the one for the furthest step reached.

Pure functions over plain data. An immediate step's message and a due nudge's are prepared here and now, for the people
that the batch's directory knows. The rules are those of the design's *Supersession*; where they say more than
"drop what is not further than the live nudge", that is because a late event would otherwise re-arm a
reminder after the later nudge was already sent: we compare with the furthest step ever reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, assert_never

from consumers.preparation.decide import prepare
from consumers.preparation.model import NOBODY_KNOWN, Directory, Intent, Prepared
from consumers.runtime.group import Decision
from schemas.envelope import Event
from schemas.ids import derived_id
from schemas.platform_events import NUDGE_DUE, timers_topic
from schemas.products.model import Product, Role, Step
from schemas.states import NOBODY, DecisionOutcome, DropReason, NudgeReason, NudgeState


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


class Live(NamedTuple):
    """A nudge that was live before this batch, as far as its firing needs to know it."""

    kind: str
    event_id: str
    due_at: datetime
    is_pending: bool
    """Whether the clock has found it due."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a batch may need beside its leads."""

    live: Mapping[str, Live] = field(default_factory=dict)
    """By id."""
    directory: Directory = NOBODY_KNOWN
    payloads: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Of the events that caused the live nudges, by their ids, where an audience is named there."""


NOTHING_KNOWN = Known()


@dataclass(slots=True)
class Superseded:
    """A batch, decided: one decision per event, and the state that they leave behind."""

    decisions: list[Decision] = field(default_factory=list)
    leads: dict[LeadKey, Lead] = field(default_factory=dict)
    """Leads that changed, as they are after the batch."""
    cancelled: list[Cancellation] = field(default_factory=list)
    armed: dict[str, Nudge] = field(default_factory=dict)
    """New nudges by id; one superseded within the batch is born cancelled, so that history is whole."""
    prepared: list[Prepared] = field(default_factory=list)
    """What is told at once, by immediate steps and due nudges, in the order of their events."""


def decide(
    product: Product,
    leads: Mapping[LeadKey, Lead],
    events: Sequence[Event],
    known: Known = NOTHING_KNOWN,
) -> Superseded:
    """Decide events and timers in partition order; `leads` has every lead of the batch that exists already."""
    batch = Superseded()
    for event in events:
        batch.decisions.append(_decide_one(product, leads, batch, event, known))
    return batch


def _decide_one(
    product: Product, leads: Mapping[LeadKey, Lead], batch: Superseded, event: Event, known: Known
) -> Decision:
    if event.event_type == NUDGE_DUE:
        key = LeadKey(event.tenant_id, event.subject_id)
        return _fall_due(product, batch, key, batch.leads.get(key) or leads.get(key, NEW), event, known)
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
    return _reach(product, batch, key, lead, event, known)


def _fall_due(
    product: Product, batch: Superseded, key: LeadKey, lead: Lead, event: Event, known: Known
) -> Decision:
    """The clock says that a nudge is due. It is told if it still stands for the lead; one whom nobody can be told ends
    here, and so does one of a kind that the product has given up: nothing stays pending.
    """
    nudge_id = str(event.payload["nudge_id"])
    nudge = known.live.get(nudge_id)
    if nudge is None or not nudge.is_pending or lead.live != nudge_id:
        return Decision(event, DecisionOutcome.DROPPED, DropReason.SUPERSEDED)
    if nudge.kind not in product.kinds:
        return _untold(batch, key, lead, event, NudgeReason.KIND_REMOVED)
    prepared = prepare(
        product,
        Intent(
            key.tenant_id,
            key.subject_id,
            nudge.kind,
            nudge.event_id,
            timers_topic(product.product),
            nudge.due_at,
            known.payloads.get(nudge.event_id, {}),
            event.traceparent,
            nudge_id,
        ),
        known.directory,
    )
    if prepared.is_for_nobody:
        return _untold(batch, key, lead, event, NudgeReason.NOBODY)
    batch.prepared.append(prepared)
    return Decision(event, DecisionOutcome.FIRED, None, nudge_id)


def _untold(batch: Superseded, key: LeadKey, lead: Lead, event: Event, reason: NudgeReason) -> Decision:
    """The live nudge, due, ends without having been told."""
    _cancel_live(batch, key, lead, event, None, reason)
    batch.leads[key] = lead._replace(live=None)
    return Decision(event, DecisionOutcome.CANCELLED, reason, None, lead.live)


def _reach(
    product: Product, batch: Superseded, key: LeadKey, lead: Lead, event: Event, known: Known
) -> Decision:
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
        prepared = prepare(product, Intent.of(event, step.nudge, product.events_topic), known.directory)
        batch.prepared.append(prepared)
        torn_down = _tear_down(
            batch, key, lead, advanced, event, DecisionOutcome.IMMEDIATE, NudgeReason.SUPERSEDED
        )
        return torn_down._replace(reason=NOBODY) if prepared.is_for_nobody else torn_down
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
