"""A Kafka record as plain data, and its reading: an event, or a dead letter in the making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from schemas.envelope import ContractError, Event, decode
from schemas.products.catalogue import Catalogue
from schemas.states import DeadReason


class Record(NamedTuple):
    """One record with its place; plain data, so that tests and replays need no broker."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    value: bytes | None

    @classmethod
    def of(cls, message: Message) -> Record:
        """The record a consumed message carries; the message must not be an error."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        return cls(topic, partition, offset, message.key(), message.headers() or (), message.value())  # type: ignore[arg-type]  # headers are bytes on the way in


@dataclass(frozen=True, slots=True)
class Dead:
    """A record that this group will not decide: why, and as much of its identity as could be read."""

    record: Record
    reason: DeadReason
    error: str
    tenant_id: str | None = None
    event_id: str | None = None
    event_type: str | None = None


class Read(NamedTuple):
    """A record that decoded."""

    record: Record
    event: Event


def read(record: Record, catalogue: Catalogue, payload_limit: int) -> Read | Dead:
    """Decode one record. What cannot be decoded is data too: it becomes a dead letter, never an exception."""
    try:
        event = decode(
            record.topic,
            record.key,
            record.headers,
            record.value,
            catalogue=catalogue,
            payload_limit=payload_limit,
        )
    except ContractError as error:
        identity = error.partial
        return Dead(
            record, error.reason, str(error), identity.tenant_id, identity.event_id, identity.event_type
        )
    return Read(record, event)
