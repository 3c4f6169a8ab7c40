"""Whatever becomes of the process that started a stack, its engines end with it, in order and soon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.layout import Layout
from deploy.local.process import Process, ProcessId
from deploy.local.running import Hold
from deploy.local.stack import Stack

CLONE = Path(__file__).parents[2]

STARTER = """
import json, sys, time
from pathlib import Path
from deploy.local.stack import Stack
with Stack.start(Path(sys.argv[1]), ("postgres",)) as stack:
    print(json.dumps(stack.process("postgres").as_json()), flush=True)
    time.sleep(600)
"""


@contextmanager
def starter(root: Path) -> Iterator[tuple[subprocess.Popen[str], Process]]:
    """A process that has started PostgreSQL below `root` and sleeps."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(root)],
        cwd=CLONE,
        env=os.environ | {"PYTHONPATH": str(CLONE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        try:
            yield parent, Process.from_json(json.loads(parent.stdout.readline()))
        finally:
            parent.kill()


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_starter_ends_by_a_signal(root: Path, how: signal.Signals) -> None:
    with starter(root) as (parent, postgres):
        assert postgres.alive
        parent.send_signal(how)
        assert eventually(lambda: not postgres.alive and not postgres.guard.alive)
    assert "database system is shut down" in log(root)


def test_ctrl_c_in_the_terminal_reaches_only_the_starter(root: Path) -> None:
    with starter(root) as (parent, postgres):
        assert os.getpgid(postgres.engine.number) != os.getpgid(parent.pid)
        assert os.getpgid(postgres.guard.number) != os.getpgid(parent.pid)
        os.killpg(parent.pid, signal.SIGINT)
        assert eventually(lambda: not postgres.alive)
    assert "database system is shut down" in log(root)


def test_ctrl_c_in_the_middle_of_a_start(root: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER.replace(', ("postgres",)', ""), str(root)],
        env=os.environ | {"PYTHONPATH": str(CLONE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as starting:
        assert eventually((root / "logs" / "kafka.out").exists), "Kafka's JVM has begun, and needs seconds"
        starting.send_signal(signal.SIGINT)
        printed, said = starting.communicate(timeout=60)
    assert (printed, "KeyboardInterrupt" in said) == ("", True)
    assert Hold.is_free(Layout(root)), "every guard has ended before the starter did"


def test_the_guard_is_killed(root: Path) -> None:
    with starter(root) as (_, postgres):
        postgres.guard.signal(signal.SIGKILL)
        assert eventually(lambda: not postgres.alive)


def test_a_new_start_waits_for_the_end_of_a_killed_one(root: Path) -> None:
    with starter(root) as (parent, _):
        parent.kill()
        parent.wait()
        Stack.start(root, {"postgres"}).stop()


def test_a_process_is_more_than_its_number() -> None:
    me = ProcessId.of(os.getpid())
    assert me.alive
    assert not ProcessId(me.number, "another time").alive
    ProcessId(me.number, "another time").signal(signal.SIGKILL)


def log(root: Path) -> str:
    return (root / "logs" / "postgres.log").read_text()
