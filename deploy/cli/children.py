"""Several groups at once: one child process each, so that they share neither an interpreter nor a fate.

A child reads from a pipe that only its parent writes to; when the parent is gone, however it went, the pipe
ends and so does the child. No group outlives the command that started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

GRACE_S = 30.0
"""A batch in hand takes milliseconds, leaving a consumer group seconds; what outstays this is killed."""
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Ended:
    """The first child that ended, and how: an exit code as a shell would see it."""

    group: str
    exit_code: int


class Children:
    """Child processes, one per name given (a name twice is two). Stops them all at the end of its `with`."""

    def __init__(
        self,
        groups: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        log: IO[bytes] | None = None,
    ) -> None:
        """`environment` is laid over this process's; `log` takes what they say, else our stderr does."""
        self._groups = tuple(groups)
        self._environment = {**os.environ, **(environment or {})}
        self._log = log
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        port = int(self._environment.get("TELLONCE_METRICS_PORT") or 0)
        try:
            for number, group in enumerate(self._groups):
                # A port for each: a fixed one is taken by the first and counted on from there.
                own = {"TELLONCE_METRICS_PORT": str(port + number)} if port else {}
                self._started.append((group, self._start(group, own)))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ended(self) -> Ended | None:
        """The first child found to have ended, None while all run."""
        for group, child in self._started:
            if (code := child.poll()) is not None:
                return Ended(group, _as_a_shell(code))
        return None

    def failed(self) -> Ended | None:
        """Once stopped: the first that did not end well, be it before it was asked to or after.

        One that the request itself ended, because it had only just begun, ended well.
        """
        for group, child in self._started:
            if child.returncode not in (0, None, -signal.SIGTERM, -signal.SIGINT):
                return Ended(group, _as_a_shell(child.returncode))
        return None

    def stop(self) -> None:
        """Ask all to stop, wait, kill what does not; twice is fine."""
        for _, child in self._started:
            if child.poll() is None:
                with suppress(ProcessLookupError):
                    child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for _, child in self._started:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdin is not None:
                child.stdin.close()

    def _start(self, group: str, own: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.cli", "run", group, "--with-parent"],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env={**self._environment, **own},
        )


def _as_a_shell(code: int) -> int:
    """An exit code as a shell sees it: 128 and the signal's number for one that a signal ended."""
    return code if code >= 0 else 128 - code
