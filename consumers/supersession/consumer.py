"""The group `supersession.<product>`: thin I/O around `decide`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors.postgres.sql import load
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.group import Decision
from consumers.runtime.tx import Tx
from consumers.supersession.decide import Cancellation, Lead, LeadKey, Nudge, Superseded, decide
from schemas.envelope import Event
from schemas.products.model import Product, Role

QUERIES = load("consumers.supersession", "queries.sql")

_JOURNEY_ROLES = frozenset({Role.STEP, Role.END, Role.RESTART})


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
    """Turns a product's events into journeys and nudges. Stateless between batches; the database is its memory."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self.name = f"supersession.{product.product}"
        self.topics: Sequence[str] = (product.events_topic,)

    def load(self, tx: Tx, events: Sequence[Event]) -> Mapping[LeadKey, Lead]:
        """Lock the leads that exist, then read their live nudges in a statement that sees what was locked."""
        role_of = self._product.role_of
        keys = {
            LeadKey(event.tenant_id, event.subject_id)
            for event in events
            if role_of(event.event_type) in _JOURNEY_ROLES
        }
        if not keys:
            return {}
        parameters = {
            "product": self._product.product,
            "tenant_ids": text_array([key.tenant_id for key in keys]),
            "subject_ids": text_array([key.subject_id for key in keys]),
        }
        locked = tx.ask(QUERIES["lock_leads"], parameters)
        live = tx.ask(QUERIES["live_nudges"], parameters)
        nudges = {(tenant, subject): nudge_id for tenant, subject, nudge_id in live.rows()}
        return {
            LeadKey(tenant, subject): Lead(tuple(reached), began, ended, nudges.get((tenant, subject)))
            for tenant, subject, reached, began, ended in locked.rows()
        }

    def decide(self, state: Mapping[LeadKey, Lead], events: Sequence[Event]) -> Decided:
        """Pure; see `decide`."""
        return Decided(decide(self._product, state, events), state)

    def write(self, tx: Tx, decisions: Decided) -> None:
        """Journeys, then nudges: cancel what was live, insert what is new, in two statements."""
        changed = decisions.superseded.leads
        existing = decisions.existing
        self._write_leads(tx, "insert_leads", {k: lead for k, lead in changed.items() if k not in existing})
        self._write_leads(tx, "update_leads", {k: lead for k, lead in changed.items() if k in existing})
        self._cancel(tx, decisions.superseded.cancelled)
        self._arm(tx, list(decisions.superseded.armed.values()))

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
