"""Lifecycle kinds, decided: an event that a kind names is told at once; it cancels nothing and nothing cancels it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from consumers.preparation.decide import prepare
from consumers.preparation.model import Directory, Intent, Prepared
from consumers.runtime.group import Decision
from schemas.envelope import Event
from schemas.products.model import Product
from schemas.states import NOBODY, DecisionOutcome


@dataclass(slots=True)
class Fired:
    """A batch, decided."""

    decisions: list[Decision] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)


def decide(product: Product, directory: Directory, events: Sequence[Event]) -> Fired:
    """Decide events in partition order; `directory` has everybody whom their kinds name."""
    batch = Fired()
    for event in events:
        kinds = product.kinds_on(event.event_type)
        if not kinds:
            batch.decisions.append(Decision(event, DecisionOutcome.IGNORED))
            continue
        prepared = [
            prepare(product, Intent.of(event, kind, product.events_topic), directory) for kind in kinds
        ]
        batch.prepared.extend(prepared)
        untold = all(each.is_for_nobody for each in prepared)
        batch.decisions.append(Decision(event, DecisionOutcome.FIRED, NOBODY if untold else None))
    return batch
