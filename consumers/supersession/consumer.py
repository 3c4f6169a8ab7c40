"""The group `supersession.<product>`: thin I/O around `decide`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from connectors import failpoints
from connectors.failpoints import Failpoint
from connectors.postgres.sql import load
from consumers.preparation import load as directories
from consumers.preparation import write as preparation
from consumers.preparation.decide import distinct, want
from consumers.preparation.model import Wanted
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.group import Decision
from consumers.runtime.tx import Tx
from consumers.supersession.decide import (
    Cancellation,
    Known,
    Lead,
    LeadKey,
    Live,
    Nudge,
    Superseded,
    decide,
)
from schemas.codec import BodyError, EventContract
from schemas.envelope import Event
from schemas.platform_events import NUDGE_DUE, timers_topic
from schemas.products.model import Product, Role

QUERIES = load("consumers.supersession", "queries.sql")

_JOURNEY_ROLES = frozenset({Role.STEP, Role.END, Role.RESTART})


@dataclass(frozen=True, slots=True)
class State:
    """What a batch was decided on: its leads that had a row when they were locked, and what else it needed."""

    leads: Mapping[LeadKey, Lead]
    known: Known


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided, beside the leads that had a row when they were locked."""

    superseded: Superseded
    existing: Mapping[LeadKey, Lead]

    @property
    def decisions(self) -> Sequence[Decision]:
        """One per event, in their order."""
        return self.superseded.decisions


class Supersession:
    """Turns a product's events into journeys and nudges, and its due nudges and immediate steps into deliveries.

    Stateless between batches; the database is its memory. `contracts` are the product's, to read the payload of a due
    nudge's event where an audience is named in it.
    """

    def __init__(
        self, product: Product, contracts: Mapping[str, EventContract] = MappingProxyType({})
    ) -> None:
        self._product = product
        self._contracts = contracts
        self.name = f"supersession.{product.product}"
        self.topics: Sequence[str] = (product.events_topic, timers_topic(product.product))
        steps = product.journey.steps if product.journey is not None else ()
        self._at_once = {
            step.on: product.kinds[step.nudge].audiences
            for step in steps
            if step.is_immediate and not step.retired
        }
        # Of every kind that a nudge may have: the list may say another today than when it was armed.
        self._when_due = distinct(kind for kind in product.kinds.values() if kind.on is None)
        self._needs_payload = any(audience.payload_field is not None for audience in self._when_due)

    def load(self, tx: Tx, events: Sequence[Event]) -> State:
        """Lock the leads that exist, then read their live nudges in a statement that sees what was locked; and look
        up whom the batch may have to tell.
        """
        role_of, at_once = self._product.role_of, self._at_once
        keys: set[LeadKey] = set()
        due: set[LeadKey] = set()
        wanted = Wanted()
        for event in events:
            if event.event_type == NUDGE_DUE:
                due.add(LeadKey(event.tenant_id, event.subject_id))
            elif role_of(event.event_type) in _JOURNEY_ROLES:
                keys.add(LeadKey(event.tenant_id, event.subject_id))
                if event.event_type in at_once:
                    want(wanted, at_once[event.event_type], event.tenant_id, event.subject_id, event.payload)
        keys |= due
        if not keys:
            return State({}, Known())
        parameters = {
            "product": self._product.product,
            "tenant_ids": text_array([key.tenant_id for key in keys]),
            "subject_ids": text_array([key.subject_id for key in keys]),
        }
        locked = tx.ask(QUERIES["lock_leads"], parameters)
        found = tx.ask(QUERIES["live_nudges"], parameters)
        if not self._needs_payload:
            for key in due:
                want(wanted, self._when_due, key.tenant_id, key.subject_id, {})
            people = directories.ask(tx, self._product.product, wanted)
        nudges: dict[tuple[str, str], str] = {}
        live: dict[str, Live] = {}
        for tenant, subject, nudge_id, *rest in found.rows():
            nudges[tenant, subject] = nudge_id
            live[nudge_id] = Live(*rest)
        payloads: Mapping[str, Mapping[str, object]] = {}
        if self._needs_payload:
            firing = {key: live[nudges[key]].event_id for key in due if key in nudges}
            payloads = self._payloads(tx, firing)
            for key, event_id in firing.items():
                want(wanted, self._when_due, key.tenant_id, key.subject_id, payloads.get(event_id, {}))
            people = directories.ask(tx, self._product.product, wanted)
        leads = {
            LeadKey(tenant, subject): Lead(tuple(reached), began, ended, nudges.get((tenant, subject)))
            for tenant, subject, reached, began, ended in locked.rows()
        }
        return State(leads, Known(live, people.directory(), payloads))

    def decide(self, state: State, events: Sequence[Event]) -> Decided:
        """Pure; see `decide`."""
        return Decided(decide(self._product, state.leads, events, state.known), state.leads)

    def write(self, tx: Tx, decisions: Decided) -> None:
        """Journeys, then nudges (cancel what was live, insert what is new, in two statements), then deliveries."""
        changed = decisions.superseded.leads
        existing = decisions.existing
        self._write_leads(tx, "insert_leads", {k: lead for k, lead in changed.items() if k not in existing})
        self._write_leads(tx, "update_leads", {k: lead for k, lead in changed.items() if k in existing})
        self._cancel(tx, decisions.superseded.cancelled)
        self._arm(tx, list(decisions.superseded.armed.values()))
        failpoints.reach(Failpoint.SUPERSESSION_WRITTEN)
        preparation.write(tx, self._product.product, decisions.superseded.prepared)

    def _payloads(self, tx: Tx, firing: Mapping[LeadKey, str]) -> dict[str, Mapping[str, object]]:
        """What the events said that armed these leads' nudges. One that cannot be read any more names nobody."""
        if not firing:
            return {}
        rows = tx.rows(
            QUERIES["causes"],
            {
                "tenant_ids": text_array([key.tenant_id for key in firing]),
                "event_ids": text_array(list(firing.values())),
            },
        )
        payloads: dict[str, Mapping[str, object]] = {}
        for event_id, event_type, content_type, body in rows:
            try:
                payloads[event_id] = self._contracts[event_type].read(body, content_type.encode())
            except (KeyError, BodyError):
                payloads[event_id] = {}
        return payloads

    def _write_leads(self, tx: Tx, statement: str, leads: Mapping[LeadKey, Lead]) -> None:
        if not leads:
            return
        tx.run(
            QUERIES[statement],
            {
                "product": self._product.product,
                "now": tx.now,
                "tenant_ids": text_array([key.tenant_id for key in leads]),
                "subject_ids": text_array([key.subject_id for key in leads]),
                # Step names have no spaces; an array of arrays would have to be rectangular.
                "reached": text_array([" ".join(lead.reached) for lead in leads.values()]),
                "epochs": [lead.epoch_began_at for lead in leads.values()],
                "ends": [lead.ended_at for lead in leads.values()],
            },
            expect=len(leads),
        )

    def _cancel(self, tx: Tx, cancelled: Sequence[Cancellation]) -> None:
        if not cancelled:
            return
        tx.run(
            QUERIES["cancel_nudges"],
            {
                "product": self._product.product,
                "now": tx.now,
                "nudge_ids": text_array([gone.nudge_id for gone in cancelled]),
                "tenant_ids": text_array([gone.lead.tenant_id for gone in cancelled]),
                "subject_ids": text_array([gone.lead.subject_id for gone in cancelled]),
                "superseded_by": nullable_array([gone.superseded_by for gone in cancelled]),
                "cancelled_by": nullable_array([gone.cancelled_by for gone in cancelled]),
                "reasons": text_array([gone.reason.value for gone in cancelled]),
            },
            expect=len(cancelled),
        )

    def _arm(self, tx: Tx, nudges: Sequence[Nudge]) -> None:
        if not nudges:
            return
        tx.run(
            QUERIES["insert_nudges"],
            {
                "product": self._product.product,
                "now": tx.now,
                "nudge_ids": text_array([nudge.nudge_id for nudge in nudges]),
                "tenant_ids": text_array([nudge.lead.tenant_id for nudge in nudges]),
                "subject_ids": text_array([nudge.lead.subject_id for nudge in nudges]),
                "kinds": text_array([nudge.kind for nudge in nudges]),
                "steps": text_array([nudge.step for nudge in nudges]),
                "event_ids": text_array([nudge.event_id for nudge in nudges]),
                "states": text_array([nudge.state for nudge in nudges]),
                "due": [nudge.due_at for nudge in nudges],
                "superseded_by": nullable_array([nudge.superseded_by for nudge in nudges]),
                "cancelled_by": nullable_array([nudge.cancelled_by for nudge in nudges]),
                "reasons": nullable_array([nudge.reason for nudge in nudges]),
            },
            expect=len(nudges),
        )
