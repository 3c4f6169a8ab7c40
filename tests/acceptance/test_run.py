"""`tellonce run` with several groups: asked to stop, it ends well; one that dies ends all; nobody is orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from deploy.cli.exits import Exit
from deploy.local.stack import Stack
from tests.acceptance.waiting import WITHIN_S, until


def addresses(stack: Stack) -> dict[str, str]:
    """What the clock and the capture supervisor need, whatever this process's environment says."""
    return {
        "TELLONCE_DATABASE_URL": stack.consumer_dsn,
        "TELLONCE_CONNECT_DATABASE_URL": stack.connect_dsn,
        "TELLONCE_KAFKA_BOOTSTRAP": stack.bootstrap,
        "TELLONCE_CONNECT_URL": stack.connect_url,
        "TELLONCE_METRICS_PORT": "0",
        "TELLONCE_LOG_FORMAT": "json",
        "TELLONCE_LOG_LEVEL": "info",
    }


@contextmanager
def run(
    stack: Stack, log: Path, *groups: str
) -> Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]:
    """The command, once each of its children works, and those children; none is left at the end."""
    with log.open("wb") as output:
        command = subprocess.Popen(
            [sys.executable, "-m", "deploy.cli", "run", *groups],
            env=os.environ | addresses(stack),
            stdout=output,
            stderr=output,
        )
    children: list[psutil.Process] = []
    try:
        until(lambda: log.read_text().count("_started") == len(groups), f"all run: {log.read_text()}")
        children = psutil.Process(command.pid).children()
        assert len(children) == len(groups)
        yield command, children
    finally:
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        command.kill()
        command.wait()


@pytest.mark.timeout(300)
def test_asked_to_stop_it_stops_its_groups_and_ends_with_0(pipeline: Stack, tmp_path: Path) -> None:
    with run(pipeline, tmp_path / "log", "clock", "capture") as (command, children):
        command.send_signal(signal.SIGTERM)

        assert command.wait(WITHIN_S) == Exit.OK
        assert all(gone(child) for child in children)
        said = (tmp_path / "log").read_text()
        assert "clock_stopped" in said
        assert "capture_stopped" in said


@pytest.mark.timeout(300)
def test_the_first_that_dies_stops_the_others_and_gives_its_code(pipeline: Stack, tmp_path: Path) -> None:
    with run(pipeline, tmp_path / "log", "clock", "clock") as (command, children):
        children[0].kill()

        assert command.wait(WITHIN_S) == 128 + signal.SIGKILL
        assert all(gone(child) for child in children)
        assert "clock ended with 137; stopping the others" in (tmp_path / "log").read_text()


@pytest.mark.timeout(300)
def test_killed_itself_it_leaves_nobody_behind(pipeline: Stack, tmp_path: Path) -> None:
    with run(pipeline, tmp_path / "log", "clock", "clock") as (command, children):
        command.kill()
        command.wait(WITHIN_S)

        until(lambda: all(gone(child) for child in children), "the groups have ended")


def gone(process: psutil.Process) -> bool:
    """Ended, or ended and not yet collected by whoever adopted it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
