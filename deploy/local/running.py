"""What makes a stack one running thing: its ports, its lock, and the file that says what runs."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal, Self

from deploy.local.errors import StackError
from deploy.local.layout import Layout, write_private
from deploy.local.ports import LOOPBACK, Lease
from deploy.local.process import Process, ProcessId

Component = Literal["postgres", "kafka", "connect"]

ALL: Final[tuple[Component, ...]] = ("postgres", "kafka", "connect")
"""In the order they depend on each other."""

ENDING_S = 30.0
"""How long a new stack waits for the end of one whose starter was just killed."""


class StackRunningError(StackError):
    """A stack of the same root runs already."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the engines listen, all on loopback."""

    postgres: int
    kafka: int
    controller: int
    connect: int

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.kafka}"

    @property
    def connect_url(self) -> str:
        return f"http://{LOOPBACK}:{self.connect}"


@dataclass(slots=True)
class Running:
    """The engines that were started, by name, and their ports; can be written down for another process."""

    ports: Ports
    processes: dict[Component, Process] = field(default_factory=dict)
    starter: ProcessId | None = None
    """The process it will end with; None when it runs detached."""

    def write(self, path: Path) -> None:
        processes = {name: process.as_json() for name, process in self.processes.items()}
        starter = asdict(self.starter) if self.starter else None
        state = {"ports": asdict(self.ports), "processes": processes, "starter": starter}
        write_private(path, json.dumps(state, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """What `write` wrote; None if nothing did."""
        try:
            state = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        processes: dict[Component, Process] = {
            name: Process.from_json(written) for name, written in state["processes"].items()
        }
        starter = ProcessId(**state["starter"]) if state["starter"] else None
        return cls(Ports(**state["ports"]), processes, starter)

    @property
    def ending(self) -> bool:
        """Whether its starter is gone, so that its guards are stopping it."""
        return self.starter is not None and not self.starter.alive


class Hold:
    """This process's hold on a root: a lock that the guards share, and the pipe by which they watch.

    The lock lasts until the last guard has ended, however the starter ended. The pipe's write end is open
    here alone: when it closes, the guards stop their engines, unless `let_go` was called before.
    """

    def __init__(self, lock: int) -> None:
        self.lock = lock
        self.watch, self._alive = os.pipe()
        self._leases: list[Lease] = []

    @classmethod
    def take(cls, layout: Layout) -> Self:
        """Take the root, waiting a while for one that is just ending. Raises StackRunningError."""
        lock = os.open(layout.lock, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + ENDING_S
        while not _locks(lock):
            running = Running.read(layout.state)
            if (running is not None and not running.ending) or time.monotonic() > deadline:
                os.close(lock)
                raise StackRunningError(_runs_already(layout, running))
            time.sleep(0.05)
        return cls(lock)

    @staticmethod
    def is_free(layout: Layout) -> bool:
        """Whether nothing runs below this root."""
        try:
            lock = os.open(layout.lock, os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            return _locks(lock)
        finally:
            os.close(lock)

    def lease_ports(self) -> Ports:
        """Four free ports that stay this stack's, also while an engine is down."""
        leases = [Lease() for _ in range(4)]
        self._leases += leases
        return Ports(*(lease.port for lease in leases))

    def let_go(self) -> None:
        """Tell the guards to go on without this process; only for a stack that is whole."""
        os.write(self._alive, b"!")
        self.release()

    def release(self) -> None:
        """Close everything; twice is fine."""
        for lease in self._leases:
            lease.release()
        for descriptor in (self.lock, self.watch, self._alive):
            with suppress(OSError):
                os.close(descriptor)
        self.lock = self.watch = self._alive = -1


def _runs_already(layout: Layout, running: Running | None) -> str:
    whose = (
        f"process {running.starter.number} ends it" if running and running.starter else "`make down` stops it"
    )
    return f"a stack runs already in {layout.root}: {whose}"


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
