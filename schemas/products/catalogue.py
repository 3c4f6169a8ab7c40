"""All products of an installation with their compiled contracts: where decoding and deciding look things up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from schemas.codec import EventContract
from schemas.names import did_you_mean
from schemas.platform_events import DELIVERY_EVENTS, TIMER_EVENTS, deliveries_topic, timers_topic
from schemas.products.audience import Channel
from schemas.products.model import Product


class UnknownProductError(LookupError):
    """No such product here; the message names those there are."""


class UnknownEventTypeError(LookupError):
    """No product here has such an event type; the message names the nearest."""


@dataclass(frozen=True, slots=True)
class LoadedProduct:
    """A valid product: its model and, by event type, its contracts."""

    product: Product
    events: Mapping[str, EventContract]
    samples: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """One valid payload per event type, as JSON values."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Template sources by path below `templates/`."""
    source: bytes = field(init=False)
    """The name as the header `ce_source` has it; made once, for it is compared with every record's."""

    @property
    def name(self) -> str:
        """The product's name."""
        return self.product.product

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.product.product.encode())


@dataclass(frozen=True, slots=True)
class Stream:
    """One product's records on a topic of the platform's own."""

    name: str
    """The product's name."""
    source: bytes
    events: Mapping[str, EventContract]
    is_keyed_by_subject: bool = True
    """False where the user is the key."""


class Catalogue:
    """The products of an installation, by name and by topic. Immutable; safe to share between threads."""

    __slots__ = ("_by_topic", "_events", "_products", "_streams")

    def __init__(self, products: Iterable[LoadedProduct]) -> None:
        self._products = {loaded.name: loaded for loaded in products}
        self._by_topic = {loaded.product.events_topic: loaded for loaded in self._products.values()}
        self._streams = _streams(self._products.values())
        self._events = {
            name: contract for loaded in self._products.values() for name, contract in loaded.events.items()
        }

    @property
    def products(self) -> Mapping[str, LoadedProduct]:
        """Every product by name."""
        return MappingProxyType(self._products)

    def product(self, name: str) -> LoadedProduct:
        """The product of this name; raises `UnknownProductError`."""
        try:
            return self._products[name]
        except KeyError:
            raise UnknownProductError(
                f"no product {name!r} here; there are {', '.join(sorted(self._products)) or 'none'}"
            ) from None

    def event(self, event_type: str) -> EventContract:
        """The contract of an event type; raises `UnknownEventTypeError`."""
        try:
            return self._events[event_type]
        except KeyError:
            raise UnknownEventTypeError(
                f"no product here has an event type {event_type!r}{did_you_mean(event_type, self._events)}"
            ) from None

    def of_topic(self, topic: str) -> LoadedProduct | None:
        """The product whose events are on this topic, None when it is no product's."""
        return self._by_topic.get(topic)

    def streams_of(self, topic: str) -> Mapping[bytes, Stream] | None:
        """Each product's records on a topic of the platform's own, by what the header `ce_source` says; None when it
        is no such topic.
        """
        return self._streams.get(topic)


def _streams(products: Iterable[LoadedProduct]) -> dict[str, dict[bytes, Stream]]:
    """A product has its timers for itself; the deliveries of all are together."""
    found: dict[str, dict[bytes, Stream]] = {deliveries_topic(channel): {} for channel in Channel}
    for loaded in products:
        found[timers_topic(loaded.name)] = {loaded.source: Stream(loaded.name, loaded.source, TIMER_EVENTS)}
        for channel in Channel:
            found[deliveries_topic(channel)][loaded.source] = Stream(
                loaded.name, loaded.source, DELIVERY_EVENTS, channel is not Channel.INAPP
            )
    return found
