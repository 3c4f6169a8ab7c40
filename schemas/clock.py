"""The one Clock, as arithmetic: what time it is, given what the installation's clock was set to.

Nothing in the product asks the machine for the time of a decision. The clock is a line through one point:
at the real instant `real_at` it showed `clock_at`, and it runs `rate` times as fast as real time. A held
tenant's clock stands still at the instant it was held. That is how demos, tests and drills move time, and
how history is imported without making anything due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MAX_RATE = 100_000.0
"""A day in under a second; faster than that only overflows dates."""


class InvalidClockError(ValueError):
    """The clock was asked to be what it cannot be; the message says what is allowed."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What the clock is set to. Instants are aware; one reading answers for any real instant."""

    real_at: datetime
    clock_at: datetime
    rate: float = 1.0

    def __post_init__(self) -> None:
        if self.real_at.tzinfo is None or self.clock_at.tzinfo is None:
            raise InvalidClockError(
                "a clock is set with aware instants; give a zone, such as 2026-12-01T09:00:00Z"
            )
        if not (math.isfinite(self.rate) and 0.0 <= self.rate <= MAX_RATE):
            raise InvalidClockError(
                f"rate {self.rate} is outside 0 … {MAX_RATE:g} (1 is real time, 0 stands still)"
            )

    @classmethod
    def real(cls, at: datetime) -> ClockReading:
        """The clock that shows real time."""
        return cls(real_at=at, clock_at=at, rate=1.0)

    def now(self, real: datetime) -> datetime:
        """The clock's time at a real instant, in UTC; never runs backwards as `real` goes forward."""
        return (self.clock_at + (real - self.real_at) * self.rate).astimezone(UTC)

    def now_for(self, real: datetime, held_at: datetime | None) -> datetime:
        """The clock's time for one tenant: a held tenant's clock stands at `held_at`."""
        return self.now(real) if held_at is None else held_at.astimezone(UTC)

    @property
    def offset(self) -> timedelta:
        """How far the clock was ahead of real time when it was set."""
        return self.clock_at - self.real_at

    @property
    def is_real(self) -> bool:
        """Whether the clock shows real time: neither offset nor sped up."""
        return self.rate == 1.0 and self.real_at == self.clock_at

    def moved(self, real: datetime, by: timedelta) -> ClockReading:
        """The same pace, `by` further on from the real instant `real` (negative: back)."""
        return ClockReading(real, self.now(real) + by, self.rate)

    def paced(self, real: datetime, rate: float) -> ClockReading:
        """From `real` on, `rate` times as fast; the time shown at `real` does not jump."""
        return ClockReading(real, self.now(real), rate)

    def showing(self, real: datetime, at: datetime) -> ClockReading:
        """The same pace, showing `at` at the real instant `real`."""
        return ClockReading(real, at, self.rate)
