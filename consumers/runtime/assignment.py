"""Positions: which partitions are ours, and where each stands in the database.

Kafka's committed offsets are advice for dashboards; the database's `consumer_progress` is the position. A
topic is known by its id, so one that was deleted and made anew begins at its beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import psycopg
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from connectors.kafka.offsets import begin_offsets
from connectors.kafka.topics import TopicMeta, TopicSpec, topic_ids
from connectors.logging import get_logger
from connectors.postgres import clock
from connectors.postgres.sql import load
from consumers.runtime.errors import EXIT_CONFIG, StopRunning
from consumers.runtime.fence import Partition

QUERIES = load("consumers.runtime", "queries.sql")

_log = get_logger(__name__)


class Positions:
    """What this process last read or wrote of each of its partitions. Not thread-safe."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, int], tuple[Partition, int]] = {}

    def __len__(self) -> int:
        return len(self._next)

    def hold(self, places: Mapping[Partition, int]) -> None:
        """From now on these stand here; a new incarnation of a topic replaces the old one."""
        for place, position in places.items():
            self._next[place.topic, place.partition] = (place, position)

    def release(self, partitions: Collection[tuple[str, int]]) -> None:
        """These are somebody else's now."""
        for partition in partitions:
            self._next.pop(partition, None)

    def of(self, partitions: Collection[tuple[str, int]]) -> dict[Partition, int]:
        """The positions of those partitions that are ours."""
        return dict(self._next[partition] for partition in partitions if partition in self._next)

    def get(self, topic: str, partition: int) -> tuple[Partition, int] | None:
        """A partition and its position, None when it is not ours."""
        return self._next.get((topic, partition))


def described(admin: AdminClient, specs: Sequence[TopicSpec]) -> dict[str, TopicMeta]:
    """The topics as they are now. Raises `StopRunning` for one that is missing or has another partition
    count: its keys would be read in another order than they were decided in.
    """
    found = topic_ids(admin, [spec.name for spec in specs])
    for spec in specs:
        meta = found.get(spec.name)
        if meta is None:
            raise StopRunning(
                f"topic {spec.name} does not exist; `tellonce connector apply` creates it", EXIT_CONFIG
            )
        if meta.partitions != spec.partitions:
            raise StopRunning(
                f"topic {spec.name} has {meta.partitions} partitions and must have {spec.partitions}: a keyed "
                "topic's count never changes in place. Drain it, delete it, and run `tellonce connector apply`.",
                EXIT_CONFIG,
            )
    return found


def claim(
    conn: psycopg.Connection[Any],
    admin: AdminClient,
    group: str,
    topics: Mapping[str, TopicMeta],
    partitions: Collection[tuple[str, int]],
) -> dict[Partition, int]:
    """The database's position of each partition; a missing row means the beginning, and is written."""
    places = [Partition(topic, topics[topic].topic_id, partition) for topic, partition in partitions]
    parameters = {
        "group": group,
        "topic_ids": [place.topic_id for place in places],
        "partitions": [place.partition for place in places],
    }
    known = _read(conn, parameters)
    missing = [place for place in places if (place.topic_id, place.partition) not in known]
    if missing:
        begins = begin_offsets(admin, {place.topic for place in missing})
        conn.execute(
            QUERIES["claim_progress"],
            {
                "group": group,
                "now": clock.now(conn),
                "topic_ids": [place.topic_id for place in missing],
                "partitions": [place.partition for place in missing],
                "topics": [place.topic for place in missing],
                "next_offsets": [begins[place.topic].partitions[place.partition] for place in missing],
            },
        )
        known = _read(conn, parameters)
    return {place: known[place.topic_id, place.partition] for place in places}


def rewind(
    conn: psycopg.Connection[Any], admin: AdminClient, group: str, place: Partition
) -> dict[Partition, int]:
    """Kafka no longer holds the position (retention passed it, or the log was cut): go to the first offset
    that is there. What was decided is skipped by the anti-join; what is gone, the reconciler sends again.
    """
    low = begin_offsets(admin, [place.topic])[place.topic].partitions[place.partition]
    conn.execute(
        QUERIES["rewind_progress"],
        {
            "group": group,
            "now": clock.now(conn),
            "topic_id": place.topic_id,
            "partition": place.partition,
            "next_offset": low,
        },
    )
    _log.error(
        "offset_out_of_range",
        detail=f"{place.topic}[{place.partition}] does not hold the position any more; reading from {low}",
    )
    return {place: low}


def as_offsets(positions: Mapping[Partition, int]) -> list[TopicPartition]:
    """The same for Kafka's client."""
    return [TopicPartition(place.topic, place.partition, position) for place, position in positions.items()]


def _read(conn: psycopg.Connection[Any], parameters: Mapping[str, object]) -> dict[tuple[str, int], int]:
    rows = conn.execute(QUERIES["read_progress"], parameters).fetchall()
    return {(topic_id, partition): offset for topic_id, partition, offset in rows}
