"""When to try again: growing pauses, forgotten after a time of health."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Pauses of `first_s`, doubling up to `most_s`. Times are seconds of one monotonic clock.

    No jitter: one supervisor acts at a time, and workers share nothing that a herd could trample.
    """

    first_s: float = 1.0
    most_s: float = 60.0
    healthy_s: float = 60.0
    """Only this long without trouble shows that the last attempt helped; a task may fail minutes in."""

    tries: int = 0
    _due: float = 0.0
    _well_since: float | None = None

    def due(self, now: float) -> bool:
        """Whether the pause is over."""
        return now >= self._due

    def tried(self, now: float) -> float:
        """An attempt is made now; returns the pause until the next."""
        pause: float = min(self.first_s * 2.0 ** min(self.tries, 60), self.most_s)
        self.tries += 1
        self._due = now + pause
        self._well_since = None
        return pause

    def trouble(self) -> None:
        """It is not well now."""
        self._well_since = None

    def well(self, now: float) -> None:
        """It is well now; after `healthy_s` in a row earlier attempts are forgotten."""
        if self._well_since is None:
            self._well_since = now
        elif now - self._well_since >= self.healthy_s:
            self.tries, self._due = 0, 0.0
