"""The group `rules.<product>`: thin I/O around `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from consumers.preparation import load as directories
from consumers.preparation import write as preparation
from consumers.preparation.decide import want
from consumers.preparation.model import Directory, Wanted
from consumers.rules.decide import Fired, decide
from consumers.runtime.tx import Tx
from schemas.envelope import Event
from schemas.products.model import Product


class Rules:
    """Tells a product's lifecycle events. Stateless; what it decides depends on the directory alone."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self.name = f"rules.{product.product}"
        self.topics: Sequence[str] = (product.events_topic,)

    def load(self, tx: Tx, events: Sequence[Event]) -> Directory:
        """The people whom the batch's lifecycle events are for; no statement when it has none."""
        product, wanted = self._product, Wanted()
        for event in events:
            for kind in product.kinds_on(event.event_type):
                want(wanted, product.kinds[kind].audiences, event.tenant_id, event.subject_id, event.payload)
        return directories.ask(tx, product.product, wanted).directory()

    def decide(self, state: Directory, events: Sequence[Event]) -> Fired:
        """Pure; see `decide`."""
        return decide(self._product, state, events)

    def write(self, tx: Tx, decisions: Fired) -> None:
        """Notifications, deliveries and their announcements."""
        preparation.write(tx, self._product.product, decisions.prepared)
