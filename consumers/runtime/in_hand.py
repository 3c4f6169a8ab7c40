"""Records that were polled and are not committed yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from consumers.runtime.records import Dead, Read, Record


class InHand:
    """What one poll gave, handed out in batches of at most `limit`; the next one may be decoded ahead of its turn.

    The records of a partition are in order and follow on its position; whoever moves a position must `keep` only
    what still does. Not thread-safe.
    """

    def __init__(
        self, read: Callable[[Sequence[Record]], list[Read | Dead]], records: Sequence[Record], limit: int
    ) -> None:
        self._read = read
        self._waiting = [records[start : start + limit] for start in range(0, len(records), limit)][::-1]
        self._decoded: list[Read | Dead] = []

    def decode(self) -> None:
        """Decode the next batch, if there is one and it is not decoded yet."""
        if not self._decoded and self._waiting:
            self._decoded = self._read(self._waiting.pop())

    def take(self) -> list[Read | Dead]:
        """The next batch; empty when there is nothing left."""
        while not self._decoded and self._waiting:
            self.decode()
        batch, self._decoded = self._decoded, []
        return batch

    def keep(self, follows: Callable[[Record], bool]) -> None:
        """Forget the records that do not follow on their position any more."""
        self._decoded = [item for item in self._decoded if follows(item.record)]
        self._waiting = [[record for record in batch if follows(record)] for batch in self._waiting]
