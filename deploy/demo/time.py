"""Time, compressed: the platform's Clock made to run faster, and what was real when it showed an instant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg import Connection

from connectors.postgres import clock
from producers.clock import time
from schemas.clock import ClockReading


class Time:
    """The Clock of one installation, on a connection of its owner that commits by itself."""

    def __init__(self, owner: Connection[Any]) -> None:
        self._owner = owner
        self._readings: list[ClockReading] = [clock.read(owner)]

    def run(self, rate: float) -> None:
        """From now on so many times as fast as real time."""
        self._readings.append(time.pace(self._owner, rate))

    def real(self, shown: datetime) -> datetime:
        """The real instant at which the Clock showed this one."""
        reading = next(
            (each for each in reversed(self._readings) if each.clock_at <= shown), self._readings[0]
        )
        return reading.real_at + (shown - reading.clock_at) / reading.rate
