"""Looks all along whether any lead has two live nudges: a promise about every instant, not only the end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import psycopg

from connectors.postgres import sql

QUERIES = sql.load("deploy.demo", "queries.sql")
EVERY_S: Final = 0.02
"""Often enough to fall between most commits, rarely enough to leave the machine to the storm."""


class Sampler:
    """Samples from its own thread and connection while it is entered."""

    def __init__(self, consumer_dsn: str, tenants: Sequence[str]) -> None:
        self.samples = 0
        self.found: list[tuple[str, str]] = []
        """Tenant and lead, once per sample that saw them with two live nudges."""
        self._dsn = consumer_dsn
        self._tenants = list(tenants)
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes a last sample; raises what kept it from looking, for then nothing is known."""
        self._stop.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as conn:
                while True:
                    last = self._stop.wait(EVERY_S)
                    self.found += conn.execute(QUERIES["two_live"], {"tenants": self._tenants}).fetchall()
                    self.samples += 1
                    if last:
                        return
        except psycopg.Error as error:
            self._error = error
