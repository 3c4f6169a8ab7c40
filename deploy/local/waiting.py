"""Waiting for an engine to answer, with a deadline, its death, and an abandoned start in view."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.local.errors import StackError
from deploy.local.process import Process

TAIL_LINES = 40
"""Enough for a Java stack trace's cause or PostgreSQL's FATAL with its hint."""


class AbandonedError(Exception):
    """The start was given up elsewhere (Ctrl-C, or another engine failed)."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for an engine, what to show when in vain, and whether waiting still makes sense."""

    engine: str
    logs: tuple[Path, ...]
    timeout_s: float
    abandoned: threading.Event

    def until(self, process: Process, answers: Callable[[], bool]) -> None:
        """Return once `answers()`; raise StackError when the engine dies or the time is over."""
        deadline = time.monotonic() + self.timeout_s
        while not answers():
            if self.abandoned.wait(0.03):
                raise AbandonedError
            if not process.alive:
                raise self.failed("ended while it was starting")
            if time.monotonic() > deadline:
                raise self.failed(f"did not answer within {self.timeout_s:.0f} s")

    def failed(self, how: str) -> StackError:
        """The error to raise, with the tail of each log that says anything."""
        shown = [f"--- the end of {log} ---\n{text}" for log in self.logs if (text := tail(log))]
        return StackError("\n".join([f"{self.engine} {how}", *shown]))


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a file; empty when it does not exist."""
    try:
        text = log.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
