"""A rate limit that lets bursts of one batch through and never more than the rate over time."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """A token bucket of one second's worth; `rate` in events per second, None without a limit.

    Not for several threads. Time is monotonic and real: what is limited is the load on a real database.
    """

    def __init__(
        self,
        rate: float | None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if rate is not None and rate <= 0:
            raise ValueError(f"rate {rate}: more than 0 events per second, or none for no limit")
        self._rate = rate
        self._monotonic = monotonic
        self._sleep = sleep
        self._owed_until = monotonic()

    def batch(self, wanted: int) -> int:
        """How many events to take at once, at most: about a quarter of a second's worth when limited."""
        return wanted if self._rate is None else max(1, min(wanted, int(self._rate / 4)))

    def take(self, events: int) -> None:
        """Wait until `events` more may go out."""
        if self._rate is None:
            return
        now = self._monotonic()
        self._owed_until = max(self._owed_until, now - 1.0)
        if (wait := self._owed_until - now) > 0:
            self._sleep(wait)
        self._owed_until += events / self._rate
