"""A guarded engine seen from outside: start, stop, kill, suspend, resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deploy.local.account import Account
from deploy.local.errors import StackError
from deploy.local.guard import descendants

GUARD = Path(__file__).with_name("guard.py")

START_TIMEOUT_S = 10.0
"""For the guard to say its engine's process id: it forks and execs, nothing more."""


class ProcessError(StackError):
    """An engine could not be started or did not end."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to run one engine. `out` takes what it prints; `stop_signal` asks it to end within `grace_s`."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    out: Path
    stop_signal: signal.Signals
    grace_s: float
    account: Account | None = None
    leaves: tuple[Path, Path] | None = None
    """A file that the engine writes when it ends by itself or is asked to, and where to move it then."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, not just its number: the number is used again, `started` (in the kernel's ticks) is not."""

    number: int
    started: str

    @classmethod
    def of(cls, number: int) -> ProcessId:
        return cls(number, _started(number))

    @property
    def alive(self) -> bool:
        return self.started != "" and _started(self.number) == self.started

    def signal(self, which: signal.Signals) -> None:
        """Send it; a process that is gone is no error."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.number, which)


@dataclass(frozen=True, slots=True)
class Process:
    """One engine and its guard: only process ids, so it can be written down and read by another process."""

    guard: ProcessId
    engine: ProcessId
    grace_s: float
    child: subprocess.Popen[bytes] | None = field(default=None, compare=False)
    """The guard, in the process that started it: who has children must collect them."""

    @classmethod
    def start(cls, launch: Launch, *, watch: int, keep: tuple[int, ...]) -> Process:
        """Start the engine under a guard that watches `watch` and holds the descriptors in `keep`."""
        spec = {
            "argv": launch.argv,
            "cwd": str(launch.cwd),
            "out": str(launch.out),
            "stop_signal": int(launch.stop_signal),
            "grace_s": launch.grace_s,
            "account": launch.account.as_json() if launch.account else None,
            "watch": watch,
            "leaves": [str(path) for path in launch.leaves] if launch.leaves else None,
        }
        with launch.out.open("ab") as out:
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), json.dumps(spec)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=out,
                env=dict(launch.environment),
                pass_fds=(*keep, watch),
                start_new_session=True,
            )
        assert guard.stdout is not None
        with guard.stdout as said:
            line = said.readline()
        if not line.strip().isdigit():
            guard.wait(START_TIMEOUT_S)
            raise ProcessError(f"{launch.argv[0]} did not start; see {launch.out}")
        return cls(ProcessId.of(guard.pid), ProcessId.of(int(line)), launch.grace_s, guard)

    @classmethod
    def from_json(cls, written: dict[str, Any]) -> Process:
        return cls(ProcessId(**written["guard"]), ProcessId(**written["engine"]), written["grace_s"])

    def as_json(self) -> dict[str, Any]:
        return {"guard": asdict(self.guard), "engine": asdict(self.engine), "grace_s": self.grace_s}

    @property
    def alive(self) -> bool:
        return self.engine.alive

    def disown(self) -> None:
        """It outlives this process: nobody here will collect the guard, and that is meant."""
        if self.child is not None:
            self.child.returncode = 0

    def ask_to_stop(self) -> None:
        """Begin a graceful stop; `wait` for its end."""
        self.guard.signal(signal.SIGTERM)

    def wait(self) -> None:
        """Until engine and guard have ended. The guard kills what outstays its grace, so this ends too."""
        deadline = time.monotonic() + self.grace_s + START_TIMEOUT_S
        while self.engine.alive or self.guard.alive:
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"process {self.engine.number} did not end; its guard is {self.guard.number}"
                )
            time.sleep(0.01)
        if self.child is not None:
            self.child.wait()

    def kill(self) -> None:
        """SIGKILL to the engine and all its children at once: nothing is flushed, no goodbye is sent."""
        tree = self._tree()
        for process in tree:
            process.signal(signal.SIGKILL)
        self.wait()
        while any(process.alive for process in tree):
            time.sleep(0.01)

    def suspend(self) -> None:
        """SIGSTOP: it keeps its sockets and locks, and answers nothing."""
        for process in self._tree():
            process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._tree():
            process.signal(signal.SIGCONT)

    def _tree(self) -> list[ProcessId]:
        return [self.engine, *map(ProcessId.of, descendants(self.engine.number))]


def _started(number: int) -> str:
    """When the process began, as the system tells it; empty when there is none, or only a zombie."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _started_by_ps(number)
    except ProcessLookupError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _started_by_ps(number: int) -> str:
    shown = subprocess.run(
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return "" if shown.startswith("Z") else shown.partition(" ")[2]
