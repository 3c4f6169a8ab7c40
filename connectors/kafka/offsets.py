"""Where topics begin and end, asked through an admin client: no consumer, no group, no subscription."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from connectors.kafka.topics import TopicMeta, topic_ids

ANSWER_WITHIN_S: Final = 10.0
"""A broker that takes longer is away: ask again later."""


@dataclass(frozen=True, slots=True)
class Watermarks:
    """`low` is the first offset still kept, `high` the next record's; equal when nothing is kept."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """A topic by its id, and an offset for each partition."""

    topic_id: str
    partitions: Mapping[int, int]


def end_offsets(admin: AdminClient, names: Collection[str]) -> dict[str, TopicOffsets]:
    """The offset that each partition's next record gets, of those topics that exist.

    Whatever the broker had acknowledged before the call lies below. Raises KafkaException when it is away.
    """
    return _offsets(admin, topic_ids(admin, names), OffsetSpec.latest())


def begin_offsets(admin: AdminClient, names: Collection[str]) -> dict[str, TopicOffsets]:
    """The first offset that retention has left in each partition, of those topics that exist."""
    return _offsets(admin, topic_ids(admin, names), OffsetSpec.earliest())


def watermarks(admin: AdminClient, names: Collection[str]) -> dict[tuple[str, int], Watermarks]:
    """Both, by topic name and partition. Lows are read first: a low is never above its high."""
    known = topic_ids(admin, names)
    lows = _offsets(admin, known, OffsetSpec.earliest())
    highs = _offsets(admin, known, OffsetSpec.latest())
    return {
        (name, partition): Watermarks(low, highs[name].partitions[partition])
        for name, offsets in lows.items()
        for partition, low in offsets.partitions.items()
    }


def _offsets(
    admin: AdminClient, known: Mapping[str, TopicMeta], which: OffsetSpec
) -> dict[str, TopicOffsets]:
    wanted = {
        TopicPartition(name, partition): which
        for name, meta in known.items()
        for partition in range(meta.partitions)
    }
    found: dict[str, dict[int, int]] = {name: {} for name in known}
    if wanted:
        for place, future in admin.list_offsets(wanted, request_timeout=ANSWER_WITHIN_S).items():
            found[place.topic][place.partition] = future.result().offset
    return {name: TopicOffsets(meta.topic_id, found[name]) for name, meta in known.items()}
