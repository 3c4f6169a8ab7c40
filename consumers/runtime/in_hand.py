"""Records that were polled and are not committed yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from consumers.runtime.records import Dead, Read, Record

PolledT = TypeVar("PolledT")


class InHand(Generic[PolledT]):
    """What one poll gave, handed out in batches of at most `limit`; the next one may be read ahead of its turn.

    The records of a partition are in order and follow on its position; whoever sets a position elsewhere must
    `keep` only what still does. Not thread-safe.
    """

    def __init__(
        self, read: Callable[[Sequence[PolledT]], list[Read | Dead]], polled: Sequence[PolledT], limit: int
    ) -> None:
        self._read = read
        self._waiting = [polled[start : start + limit] for start in range(0, len(polled), limit)][::-1]
        self._ready: list[Read | Dead] = []

    def read_ahead(self) -> None:
        """Read the next batch, if there is one and it has not been read yet."""
        if not self._ready and self._waiting:
            self._ready = self._read(self._waiting.pop())

    def take(self) -> list[Read | Dead]:
        """The next batch; empty when there is nothing left."""
        while not self._ready and self._waiting:
            self.read_ahead()
        batch, self._ready = self._ready, []
        return batch

    def keep(self, follows: Callable[[Record], bool]) -> None:
        """Read what is left, and forget the records that do not follow on their position any more."""
        left = [self._ready, *map(self._read, reversed(self._waiting))]
        self._ready = [item for batch in left for item in batch if follows(item.record)]
        self._waiting = []
