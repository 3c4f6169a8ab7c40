"""A child ends with its parent, and ends cleanly while its parent lives on."""

from __future__ import annotations

import subprocess
import sys

WATCH = """
import threading
from deploy.cli.running import _end_with_parent
stop = threading.Event()
threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
"""


def child(program: str) -> subprocess.Popen[bytes]:
    """A process that watches the pipe to us, as a group started by `tellonce run` does."""
    return subprocess.Popen(
        [sys.executable, "-c", WATCH + program], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_child_that_ends_before_its_parent_ends_cleanly() -> None:
    process = child("stop.wait(0.5)")  # the watching thread waits for the pipe by then
    try:
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        close(process)


def test_a_child_stops_when_its_parent_is_gone() -> None:
    process = child("raise SystemExit(0 if stop.wait(20) else 1)")
    assert process.stdin is not None
    process.stdin.close()  # what the system does for a parent that was killed
    try:
        assert process.wait(30) == 0
    finally:
        close(process)


def close(process: subprocess.Popen[bytes]) -> None:
    """Leave neither a process nor a pipe behind."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stderr):
        if pipe is not None:
            pipe.close()
