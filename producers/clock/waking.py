"""When the clock wakes next: pure, no I/O.

due or retry behind us, something was done ──► at once
due or retry behind us, nothing was done   ──► somebody else has it locked: look again shortly
both ahead                                 ──► the nearer one, the Clock's time at the Clock's rate
nothing ahead, or the Clock stands still   ──► until woken, but look once a minute
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from schemas.clock import ClockReading

LOCKED_PAUSE_S = 0.1
"""Locks are held for a batch, some tens of milliseconds; what was locked is there or gone after that."""
LONGEST_SLEEP_S = 60.0
"""Nothing is missed while the connection stands; this bounds what a step of the server's own clock can cost."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is ahead, as of the real instant `real`. `due_at` is the Clock's time, `retry_at` real."""

    reading: ClockReading
    real: datetime
    due_at: datetime | None
    retry_at: datetime | None
    idle: bool
    """Whether the pass before found nothing it could do."""

    def sleep_s(self) -> float:
        """Real seconds to sleep, counted from `real`."""
        waits = [LONGEST_SLEEP_S]
        if self.retry_at is not None:
            waits.append((self.retry_at - self.real).total_seconds())
        if self.due_at is not None:
            left = (self.due_at - self.reading.now(self.real)).total_seconds()
            if left <= 0:
                waits.append(0.0)
            elif self.reading.rate > 0:
                waits.append(left / self.reading.rate)
        nearest = min(waits)
        if nearest > 0:
            return nearest
        return LOCKED_PAUSE_S if self.idle else 0.0

    def told(self, payload: str) -> Outlook | None:
        """What a notification changes: something earlier falls due, or None when everything may be different."""
        try:
            due_at = _EPOCH + timedelta(microseconds=int(payload))
        except (ValueError, OverflowError):
            return None
        if self.due_at is not None and self.due_at <= due_at:
            return self
        return replace(self, due_at=due_at, idle=False)
