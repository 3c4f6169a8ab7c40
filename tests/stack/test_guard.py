"""The guard with a shell script for an engine: what it does when engines misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.errors import StackError
from deploy.local.process import Launch, Process

DEAF = "trap '' TERM; while :; do sleep 0.05; done"
POLITE = "trap 'echo done > left; exit 143' TERM; echo ready; while :; do sleep 0.02; done"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Read and write end of what a guard watches."""
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def launch(folder: Path, script: str, grace_s: float = 5.0) -> Launch:
    return Launch(
        argv=("/bin/sh", "-c", script),
        cwd=folder,
        environment={"PATH": os.environ["PATH"]},
        out=folder / "out",
        stop_signal=signal.SIGTERM,
        grace_s=grace_s,
        leaves=(folder / "left", folder / "kept"),
    )


def started(folder: Path, script: str, pipe: tuple[int, int], grace_s: float = 5.0) -> Process:
    process = Process.start(launch(folder, script, grace_s), watch=pipe[0], keep=())
    deadline = time.monotonic() + 10
    while script == POLITE and "ready" not in (folder / "out").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_what_it_leaves_is_kept_when_it_ended_in_good_order(tmp_path: Path, pipe: tuple[int, int]) -> None:
    process = started(tmp_path, POLITE, pipe)
    process.ask_to_stop()
    process.wait()
    assert (tmp_path / "kept").read_text() == "done\n"


def test_what_it_left_half_written_is_not_kept(tmp_path: Path, pipe: tuple[int, int]) -> None:
    process = started(tmp_path, POLITE, pipe)
    (tmp_path / "left").write_text("half")
    process.kill()
    assert not (tmp_path / "kept").exists()


def test_an_engine_that_does_not_listen_is_killed_after_its_grace(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    process = started(tmp_path, DEAF, pipe, grace_s=0.3)
    process.ask_to_stop()
    process.wait()
    assert not process.alive


def test_a_byte_in_the_pipe_means_go_on_without_me(tmp_path: Path) -> None:
    read, write = os.pipe()
    process = started(tmp_path, POLITE, (read, write))
    os.write(write, b"!")
    os.close(write)
    os.close(read)
    time.sleep(0.3)  # an absence has no condition to wait for: long enough for a wrong guard to act
    assert process.alive
    process.ask_to_stop()
    process.wait()


def test_a_program_that_is_not_there_is_an_error_with_its_log(tmp_path: Path, pipe: tuple[int, int]) -> None:
    wrong = Launch(("/nowhere/postgres",), tmp_path, {}, tmp_path / "out", signal.SIGINT, 1.0)
    with pytest.raises(StackError, match="/nowhere/postgres did not start"):
        Process.start(wrong, watch=pipe[0], keep=())
    assert "No such file" in (tmp_path / "out").read_text()
