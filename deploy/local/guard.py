"""The guard of one engine: starts it, and never lets it outlive whoever started the guard.

Run as a script with one JSON argument (see `process.Launch`); needs nothing but the standard library. The
guard has a session of its own, so Ctrl-C reaches only the process in front, which then stops its guards in
order. It stops its engine gracefully when it gets SIGTERM, and when `watch` (the read end of a pipe that only
the starter holds open) says that the starter is gone, by whatever death; a byte in that pipe means "go on
without me". Should the guard itself be killed, Linux signals the engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
ENDED = (0, 128 + signal.SIGTERM)
"""Exit codes of an engine that ended in good order; Java's after SIGTERM is the second."""


def _die_with_guard(stop_signal: int) -> None:
    """In the child, after its user was changed (which would clear this) and before it becomes the engine."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, stop_signal)


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    """The engine, writing to its log, as the user named in the spec."""
    account = spec["account"]
    with Path(spec["out"]).open("ab") as out:
        return subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            user=account["uid"] if account else None,
            group=account["gid"] if account else None,
            extra_groups=[] if account else None,
            umask=0o077,
            preexec_fn=lambda: _die_with_guard(spec["stop_signal"]),
        )


def descendants(number: int) -> list[int]:
    """All processes below this one, whichever sessions they opened (PostgreSQL's backends each do)."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = list(children.get(number, ()))
    for process in found:  # grows while it is walked
        found += children.get(process, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    if sys.platform != "linux":
        listing = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        for line in listing.stdout.splitlines():
            child, parent = line.split()
            yield int(child), int(parent)
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                stat = (entry / "stat").read_text()
                yield int(entry.name), int(stat.rpartition(")")[2].split()[1])


def stop(engine: subprocess.Popen[bytes], stop_signal: int, grace_s: float) -> None:
    """Ask, wait, then kill. A suspended engine is woken, or it could not hear the question."""
    engine.send_signal(stop_signal)
    for process in (engine.pid, *descendants(engine.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)
    try:
        engine.wait(grace_s)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


def keep(written: Path, kept: Path) -> None:
    """Give the file its name once it is on the disk: whoever finds the name finds all of it."""
    with written.open("rb") as file:
        os.fsync(file.fileno())
    written.replace(kept)


def main(spec: dict[str, Any]) -> int:
    """Guard until the engine ends, a stop is asked for, or the starter is gone; the engine's exit code."""
    asked = False

    def ask(_signal: int, _frame: object) -> None:
        nonlocal asked
        asked = True

    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGTERM, ask)
    # Handlers, not SIG_IGN: what is ignored stays ignored across exec, and the engine must hear its signals.
    for quiet in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
        signal.signal(quiet, lambda _signal, _frame: None)

    engine = start(spec)
    sys.stdout.write(f"{engine.pid}\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    poll = select.poll()
    poll.register(wake_read, select.POLLIN)
    poll.register(spec["watch"], select.POLLIN)
    while engine.poll() is None:
        if asked:
            stop(engine, spec["stop_signal"], spec["grace_s"])
            break
        for fd, events in poll.poll():
            if fd == wake_read:
                os.read(wake_read, 512)
            elif events & select.POLLIN:
                poll.unregister(fd)
            else:
                asked = True
    if spec["leaves"] and engine.returncode in ENDED:
        with contextlib.suppress(OSError):  # not written, or the place is not ours: another engine may do it
            keep(*map(Path, spec["leaves"]))
    return engine.returncode


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
