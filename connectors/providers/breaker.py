"""Whether an account at a provider is worth calling. Pure: the caller's monotonic clock, seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from connectors.providers.model import Answer


class BreakerState(StrEnum):
    """CLOSED → OPEN after systematic failures in a row; OPEN → HALF_OPEN when its time is up, for one probe;

    HALF_OPEN → CLOSED when the probe shows a provider that answers messages, → OPEN for twice as long when not.
    """

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    failures: int = 5
    """In a row: below what happens by chance, above what one bad connection causes."""
    first_s: float = 5.0
    longest_s: float = 300.0
    """An account that comes back is in use again within five minutes, and a dead one is called 12 times an hour."""
    probe_s: float = 60.0
    """A probe whose outcome nobody reported (its process died) blocks no longer than a lease."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """One account's breaker; every change is a new value.

    `ticket, breaker = breaker.admit(now)`; call only with a ticket; then `breaker = breaker.after(ticket, answer, now)`
    or, when there was no call after all, `breaker.unused(ticket)`. Tickets of an earlier state change nothing: an
    answer to a call made before it opened says nothing about a provider now.
    """

    policy: BreakerPolicy = BreakerPolicy()
    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    openings: int = 0
    """In a row without a success between them: each doubles the pause."""
    until: float = 0.0
    """OPEN: when the probe is due; HALF_OPEN: when the probe counts as lost."""
    generation: int = 0

    def admit(self, now: float) -> tuple[int | None, Self]:
        """A ticket when a call may be made now, else None."""
        if self.state is BreakerState.CLOSED:
            return self.generation, self
        if now < self.until:
            return None, self
        probing = self._next(BreakerState.HALF_OPEN, until=now + self.policy.probe_s)
        return probing.generation, probing

    def after(self, ticket: int, answer: Answer, now: float) -> Self:
        """What the answer to a call says of the account."""
        if ticket != self.generation:
            return self
        if not answer.systematic:
            if self.state is BreakerState.CLOSED:
                return self if self.failures == 0 else replace(self, failures=0)
            return replace(self._next(BreakerState.CLOSED, until=0.0), failures=0, openings=0)
        failures = self.failures + 1
        if self.state is BreakerState.CLOSED and failures < self.policy.failures:
            return replace(self, failures=failures)
        return replace(
            self._next(BreakerState.OPEN, until=now + self._pause(answer)),
            openings=self.openings + 1,
            failures=0,
        )

    def unused(self, ticket: int) -> Self:
        """The call was not made; a probe may be made at once by another."""
        if ticket == self.generation and self.state is BreakerState.HALF_OPEN:
            return replace(self, until=0.0)
        return self

    def parked_for(self, now: float) -> float:
        """Seconds for which no call will be admitted; 0 when one is."""
        return 0.0 if self.state is BreakerState.CLOSED else max(0.0, self.until - now)

    def _pause(self, answer: Answer) -> float:
        pause = self.policy.first_s * 2.0 ** min(self.openings, 30)
        if answer.retry_after is not None:
            pause = max(pause, answer.retry_after.total_seconds())
        return min(pause, self.policy.longest_s)

    def _next(self, state: BreakerState, *, until: float) -> Self:
        return replace(self, state=state, until=until, generation=self.generation + 1)
