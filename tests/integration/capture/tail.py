"""What arrives in a topic from now on, of one tenant."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, cast

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from connectors.kafka.clients import consumer_config
from connectors.kafka.offsets import end_offsets
from connectors.settings import Settings

WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Record:
    partition: int
    offset: int
    key: str
    headers: dict[str, str | None]
    names: tuple[str, ...]
    """Of the headers, in order, repetitions included."""
    value: bytes

    @property
    def event_id(self) -> str:
        return self.headers["ce_id"] or ""


class Tail:
    """Reads without a group from where the topic ends when it is entered."""

    def __init__(self, settings: Settings, admin: AdminClient, topic: str, tenant: str) -> None:
        self._consumer = Consumer(consumer_config(settings, f"tail-{uuid.uuid4().hex}"))
        self._ends = end_offsets(admin, [topic])[topic].partitions
        self._topic = topic
        self._tenant = tenant
        self.records: list[Record] = []

    def __enter__(self) -> Self:
        self._consumer.assign(
            [TopicPartition(self._topic, number, offset) for number, offset in self._ends.items()]
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    @property
    def ids(self) -> list[str]:
        """In the order they arrived here; the order of a key is that of its partition."""
        return [record.event_id for record in self.records]

    def until(self, enough: Callable[[], bool]) -> list[Record]:
        """Read until it is enough; returns all that was read so far."""
        deadline = time.monotonic() + WITHIN_S
        while not enough():
            self._read(0.1)
            assert time.monotonic() < deadline, f"{len(self.records)} records of {self._tenant}, not enough"
        return self.records

    def until_count(self, count: int) -> list[Record]:
        return self.until(lambda: len(self.records) >= count)

    def _read(self, wait_s: float) -> None:
        message = self._consumer.poll(wait_s)
        if message is None or message.error() is not None:
            return
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if not key.startswith(f"{self._tenant}:".encode()):
            return
        assert isinstance(value, bytes)
        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        pairs = [(name, None if content is None else content.decode()) for name, content in headers]
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        names = tuple(name for name, _ in pairs)
        self.records.append(Record(partition, offset, key.decode(), dict(pairs), names, value))
