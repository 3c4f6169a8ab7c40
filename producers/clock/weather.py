"""Going on through bad weather: the database or the broker is away, busy or restarting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException
from psycopg import Error

from connectors.logging import get_logger
from connectors.postgres.errors import Fault, fault
from producers.clock.signals import Action

_log = get_logger(__name__)

MAX_PAUSE_S = 30.0


@dataclass
class Weather:
    """What one part of the clock meets. `bad` says what is away, None when all answers."""

    part: str
    stop: threading.Event
    first_pause_s: float
    """First pause in bad weather; doubles up to 30 s."""
    bad: str | None = "not connected yet"

    def clear(self) -> None:
        """Everything answered just now."""
        self.bad = None

    def through(self, work: Callable[[], None]) -> None:
        """Do `work` until stopped, again after each spell; anything but weather is raised."""
        pause = self.first_pause_s
        while not self.stop.is_set():
            try:
                work()
            except (Error, KafkaException) as error:
                if not _is_weather(error):
                    raise
                pause = self.first_pause_s if self.bad is None else min(pause * 2, MAX_PAUSE_S)
                self.bad = str(error).strip()
                _log.warning(Action.WEATHER, part=self.part, detail=self.bad, again_in_s=pause)
                self.stop.wait(pause)


def _is_weather(error: Error | KafkaException) -> bool:
    """Whether database or broker are away or busy; anything else is a fault of ours and ends the process."""
    return isinstance(error, KafkaException) or fault(error) in (Fault.WEATHER, Fault.CONFLICT)
