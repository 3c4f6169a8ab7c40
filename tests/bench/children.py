"""Processes of ours that are measured: started with the stack's settings, watched from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from connectors.settings import Latency, Settings
from tests.bench.machine import ROOT

PRODUCTS = ROOT / "tests" / "products"
STOP_WITHIN_S = 30.0


class Child:
    """A running process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self.seen = psutil.Process(process.pid)

    def check(self) -> None:
        """Raises RuntimeError with the end of its log when it has ended by itself."""
        if (code := self._process.poll()) is not None:
            raise RuntimeError(f"it ended with {code}:\n{self._log.read_text()[-2_000:]}")

    def cpu_s(self) -> tuple[float, float]:
        """User and system CPU seconds so far."""
        times = self.seen.cpu_times()
        return times.user, times.system

    def rss_mb(self) -> float:
        """Resident memory now."""
        return float(self.seen.memory_info().rss) / 2**20

    def wait(self, within_s: float) -> None:
        """Until it ends by itself, with 0."""
        self._process.wait(within_s)
        if self._process.returncode != 0:
            self.check()


@contextmanager
def running(
    module: str,
    arguments: Sequence[str],
    settings: Settings,
    log: Path,
    *,
    latency: Latency = "balanced",
) -> Iterator[Child]:
    """`python -m module arguments…` on the stack of `settings`; ended by SIGTERM, waited for."""
    environment = {
        **os.environ,
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_LATENCY": latency,
        "TELLONCE_PRODUCTS": str(PRODUCTS),
        "PYTHONPATH": str(ROOT),
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], env=environment, stdout=out, stderr=out, cwd=ROOT
        )
    try:
        yield Child(process, log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
