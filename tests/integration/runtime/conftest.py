"""Real processes on the run's stack, and waiting on what they decide."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.registry import load_catalogue
from connectors.settings import Settings
from deploy.local.stack import Stack
from schemas.products.catalogue import Catalogue

ROOT = Path(__file__).parents[3]
PRODUCTS = ROOT / "tests" / "products"
WITHIN_S = 120.0


def environment(settings: Settings) -> dict[str, str]:
    """The settings as a process's environment has them."""
    return {
        **os.environ,
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_PRODUCTS": str(PRODUCTS),
        "PYTHONPATH": str(ROOT),
    }


def until(holds: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.02)


class Fleet:
    """Supersession processes of one product; those that were killed are not waited for."""

    def __init__(self, stack: Stack, product: str, log: Path, products: Path = PRODUCTS) -> None:
        self._command = [sys.executable, "-m", "tests.integration.runtime.worker", product]
        self._environment = {**environment(stack.settings), "TELLONCE_PRODUCTS": str(products)}
        self._log = log
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, count: int = 1) -> None:
        """Start further processes."""
        for _ in range(count):
            with self._log.open("ab") as log:
                self.processes.append(
                    subprocess.Popen(self._command, env=self._environment, stderr=log, cwd=ROOT)
                )

    def started(self) -> int:
        """How many have got as far as to listen to signals and read, ever."""
        return self._log.read_text().count('"action": "started"')

    def kill(self) -> None:
        """SIGKILL the oldest."""
        process = self.processes.pop(0)
        process.kill()
        process.wait()

    def stop(self) -> list[int]:
        """SIGTERM all and return their exit codes."""
        for process in self.processes:
            process.terminate()
        try:
            return [process.wait(timeout=30) for process in self.processes]
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            self.processes.clear()


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The built-in products and those that live in the tests."""
    return load_catalogue([PRODUCTS])


@pytest.fixture
def owner(pg_only: Stack) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the database's owner, each statement its own transaction."""
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def worklog_fleet(pipeline: Stack, tmp_path: Path) -> Iterator[Fleet]:
    """Supersession processes for the work log; none runs yet."""
    fleet = Fleet(pipeline, "worklog", tmp_path / "supersession.log")
    try:
        yield fleet
    finally:
        fleet.stop()
