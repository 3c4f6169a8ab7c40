"""What must have come out: the topic read from its beginning and decided again, serially, by the pure rules.

The order is the topic's own, offset by offset: what no row in the database can say.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from connectors.kafka.clients import admin_client, consumer_config
from connectors.kafka.offsets import Watermarks, watermarks
from connectors.settings import Settings
from consumers.supersession.decide import Superseded, decide
from schemas.envelope import ContractError, Event, decode
from schemas.products.catalogue import Catalogue
from schemas.states import DeadReason

WITHIN_S: Final = 60.0
"""Reading a demo's topic takes one; past this the broker is away."""


@dataclass(slots=True)
class Replayed:
    """The topic as serial execution sees it; of a record that came twice, the first counts."""

    events: list[Event] = field(default_factory=list)
    dead: dict[tuple[str, str], DeadReason] = field(default_factory=dict)
    """Records that carry no event, by tenant and event id."""
    records: int = 0
    superseded: Superseded = field(default_factory=Superseded)


def replay(settings: Settings, catalogue: Catalogue, product: str, tenants: Sequence[str]) -> Replayed:
    """Read what the topic holds now and decide the events of `tenants`. Raises TimeoutError, KafkaException."""
    model = catalogue.product(product).product
    result = Replayed()
    seen: set[tuple[str, str]] = set()
    for message in _messages(settings, model.events_topic):
        key, value = message.key(), message.value()
        if not isinstance(key, bytes) or key.partition(b":")[0].decode() not in tenants:
            continue
        result.records += 1
        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        try:
            event = decode(model.events_topic, key, headers, _bytes(value), catalogue=catalogue)
        except ContractError as error:
            result.dead[error.partial.tenant_id or "", error.partial.event_id or ""] = error.reason
            continue
        if (event.tenant_id, event.event_id) not in seen:
            seen.add((event.tenant_id, event.event_id))
            result.events.append(event)
    result.superseded = decide(model, {}, result.events)
    return result


def _messages(settings: Settings, topic: str) -> list[Message]:
    """Every record between the topic's beginning and its end as of now; each partition in its order."""
    marks = _marks(settings, topic)
    consumer = Consumer(consumer_config(settings, f"demo-{uuid.uuid4().hex}"))
    messages: list[Message] = []
    missing = sum(mark.high - mark.low for mark in marks.values())
    deadline = time.monotonic() + WITHIN_S
    try:
        consumer.assign([TopicPartition(topic, number, mark.low) for number, mark in marks.items()])
        while missing > 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{missing} records of {topic} did not come within {WITHIN_S:.0f} s")
            message = consumer.poll(0.2)
            if message is None:
                continue
            if (error := message.error()) is not None:
                raise KafkaException(error)
            number, offset = message.partition(), message.offset()
            if number is not None and offset is not None and offset < marks[number].high:
                messages.append(message)
                missing -= 1
    finally:
        consumer.close()
    return messages


def _marks(settings: Settings, topic: str) -> Mapping[int, Watermarks]:
    found = watermarks(admin_client(settings), [topic])
    return {number: marks for (_, number), marks in found.items()}


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
