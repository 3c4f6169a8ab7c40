"""The exact fence: a batch counts only if the database stands where this process last left it.

Kafka decides who reads a partition, but it cannot stop a process that was paused, lost its partition and
woke up again. The database can: progress is locked inside the transaction and compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Partition(NamedTuple):
    """A partition of one incarnation of a topic: a recreated topic has a new id, and so a new beginning."""

    topic: str
    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The database's position differs from ours: `behind` after it was restored, `ahead` by another owner."""

    behind: Mapping[Partition, int]
    ahead: Mapping[Partition, int]

    def __bool__(self) -> bool:
        return bool(self.behind or self.ahead)


class Fenced(Exception):  # noqa: N818 a verdict that rolls the transaction back, not an error
    """The batch must not count as it is; `moved` says where the database stands."""

    def __init__(self, moved: Moved) -> None:
        super().__init__(f"the database stands elsewhere: {moved}")
        self.moved = moved


def compare(expected: Mapping[Partition, int], actual: Mapping[Partition, int]) -> Moved:
    """Where the database's positions differ from what this process last read or wrote.

    A partition whose row is gone (a database restored to before the assignment) counts as behind, at 0.
    """
    behind: dict[Partition, int] = {}
    ahead: dict[Partition, int] = {}
    for partition, position in expected.items():
        found = actual.get(partition, 0)
        if found < position:
            behind[partition] = found
        elif found > position:
            ahead[partition] = found
    return Moved(behind, ahead)


def check(expected: Mapping[Partition, int], rows: Iterable[tuple[str, int, int]]) -> None:
    """Raises `Fenced` unless the locked (topic id, partition, next offset) rows are what this process expects."""
    found = {(topic_id, number): position for topic_id, number, position in rows}
    actual = {
        place: found[place.topic_id, place.partition]
        for place in expected
        if (place.topic_id, place.partition) in found
    }
    if moved := compare(expected, actual):
        raise Fenced(moved)
