"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], within_s: float, *, every_s: float = 0.05) -> bool:
    """Ask every `every_s` until it holds; False when it did not within the time. Asks at least once."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every_s)
    return True
