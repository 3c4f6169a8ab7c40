"""The platform's processes as children of this one: what `tellonce run` starts, on a given stack."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from connectors.settings import Settings
from deploy.local.waiting import tail

STOPS_WITHIN_S: Final = 30.0
"""A consumer finishes the batch in hand, which takes milliseconds; past this it is stuck."""


class ProcessEndedError(Exception):
    """A process ended that should run on; the message has the end of its log."""


class Processes:
    """Runs each of `names` (a group, `clock` or `capture`; one named twice runs twice) while entered."""

    def __init__(self, settings: Settings, names: Sequence[str], logs: Path) -> None:
        self._settings = settings
        self._names = names
        self._logs = logs
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Self:
        try:
            for number, name in enumerate(self._names, 1):
                log = self._logs / f"{name}-{number}.log"
                with log.open("wb") as output:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "deploy.demo.worker", name],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        env=_environment(self._settings),
                        cwd=self._logs,  # away from a clone's own .local
                    )
                self._running.append((process, log))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def check(self) -> None:
        """Raise `ProcessEndedError` if one has ended."""
        for process, log in self._running:
            if (code := process.poll()) is not None:
                raise ProcessEndedError(f"{log.stem} ended with exit code {code}:\n{tail(log)}")

    def _stop(self) -> None:
        with ExitStack() as last:
            for process, _ in self._running:
                process.terminate()
                last.callback(_wait, process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment(settings: Settings) -> dict[str, str]:
    """This process's own without its settings, and those of the stack."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TELLONCE_")}
    return inherited | {
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_ADMIN_DATABASE_URL": settings.admin_database_url.get_secret_value(),
        "TELLONCE_CONNECT_DATABASE_URL": settings.connect_database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
    }
