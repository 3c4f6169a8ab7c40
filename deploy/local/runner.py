"""Starts one engine of a stack and waits until it answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from deploy.local import connect, kafka, ports, postgres
from deploy.local.account import postgres_account
from deploy.local.jars import Engines
from deploy.local.layout import Layout
from deploy.local.passwords import SUPERUSER
from deploy.local.process import Launch, Process
from deploy.local.running import Component, Hold, Ports
from deploy.local.waiting import Patience

Progress = Callable[[str], None]

TIMEOUTS_S: Mapping[Component, float] = {"postgres": 60.0, "kafka": 60.0, "connect": 90.0}
"""Many times what a start takes: PostgreSQL may replay a long WAL first, two busy cores slow Java down."""


@dataclass(slots=True)
class Runner:
    """Everything that a start needs, kept for restarts. Threads may start different engines at once."""

    layout: Layout
    engines: Engines
    ports: Ports
    passwords: Mapping[str, str]
    hold: Hold
    progress: Progress
    abandoned: threading.Event = field(default_factory=threading.Event)

    def start(self, component: Component, listening: Callable[[], None] = lambda: None) -> Process:
        """Start it and return once it answers; `listening` is called when its port first accepts connections.

        Raises StackError with the end of its logs; the process is stopped then.
        """
        began = time.monotonic()
        process = Process.start(self._launch(component), watch=self.hold.watch, keep=(self.hold.lock,))
        try:
            patience = Patience(component, self._logs(component), TIMEOUTS_S[component], self.abandoned)
            patience.until(process, lambda: ports.listens(self._port(component)))
            listening()
            patience.until(process, lambda: self._answers(component))
        except BaseException:
            process.ask_to_stop()
            process.wait()
            raise
        self.progress(f"{component} answers after {time.monotonic() - began:.1f} s")
        return process

    def _launch(self, component: Component) -> Launch:
        out = self._out(component)
        layout, engines, at = self.layout, self.engines, self.ports
        match component:
            case "postgres":
                password = self.passwords[SUPERUSER]
                return postgres.prepare(
                    layout.postgres, engines, at.postgres, password, postgres_account(), out
                )
            case "kafka":
                return kafka.prepare(layout.kafka, engines, at.kafka, at.controller, out)
            case "connect":
                return connect.prepare(layout.connect, engines, at.bootstrap, at.connect, out)
            case _:
                assert_never(component)

    def _port(self, component: Component) -> int:
        return {"postgres": self.ports.postgres, "kafka": self.ports.kafka, "connect": self.ports.connect}[
            component
        ]

    def _answers(self, component: Component) -> bool:
        match component:
            case "postgres":
                return postgres.answers(self.ports.postgres, self.passwords[SUPERUSER])
            case "kafka":
                return kafka.answers(self.ports.bootstrap)
            case "connect":
                return connect.answers(self.ports.connect_url)
            case _:
                assert_never(component)

    def _out(self, component: Component) -> Path:
        """What the process itself prints; the Java programs log to a file of their own."""
        return self.layout.logs / f"{component}.{'log' if component == 'postgres' else 'out'}"

    def _logs(self, component: Component) -> tuple[Path, ...]:
        return (self.layout.logs / f"{component}.log", self.layout.logs / f"{component}.out")
