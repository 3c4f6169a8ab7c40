"""Several groups at once: the first that ends is noticed with its code, and none is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.cli import running
from deploy.cli.children import Children, Ended


class Programs(Children):
    """Children that run a few lines instead of a group: their 'group' is the program."""

    def _start(self, group: str, own: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", group], stdin=subprocess.PIPE, env={**os.environ, **own}
        )


WAIT = "import sys; sys.stdin.read()"


def first_end(children: Children) -> Ended:
    deadline = time.monotonic() + 60
    while (ended := children.ended()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return ended


def test_the_first_that_ends_gives_its_code() -> None:
    with Programs([WAIT, "raise SystemExit(75)"]) as children:
        assert first_end(children) == Ended("raise SystemExit(75)", 75)


def test_one_that_was_killed_gives_the_code_that_a_shell_would() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with Programs([program]) as children:
        assert first_end(children).exit_code == 128 + 9


def test_all_are_stopped_at_the_end_and_stopping_twice_is_fine() -> None:
    with Programs([WAIT, WAIT]) as children:
        assert children.ended() is None
    assert children.ended() is not None
    children.stop()


@pytest.mark.parametrize(("given", "expected"), [("9100", "9101"), ("0", "0")])
def test_each_has_a_metrics_port_of_its_own(
    given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fixed port is counted on from; 0 stays 0, for each takes a free one."""
    monkeypatch.setenv("TELLONCE_METRICS_PORT", given)
    note = tmp_path / "port"
    second = (
        f"import os, pathlib; pathlib.Path({str(note)!r}).write_text(os.environ['TELLONCE_METRICS_PORT'])"
    )
    with Programs([WAIT, second]) as children:
        first_end(children)
    assert note.read_text() == expected


DEAF = "import signal, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
"""What a request to stop does not end: the program's own end is what counts."""


@pytest.mark.parametrize(("end", "code"), [("raise SystemExit(3)", 3), ("raise SystemExit(0)", 0)])
def test_asked_to_stop_right_after_one_crashed_the_crash_is_not_forgotten(
    end: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request comes between two looks: only the children can tell that all was not well."""
    ending = tmp_path / "ending"
    monkeypatch.setattr(running, "Children", Programs)
    monkeypatch.setattr(running, "LOOK_EVERY_S", 60.0)
    stop = threading.Event()

    def ask_once_it_ends() -> None:
        deadline = time.monotonic() + 60
        while not ending.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()

    asking = threading.Thread(target=ask_once_it_ends)
    asking.start()
    found = running._beside_each_other([WAIT, f"{DEAF}pathlib.Path({str(ending)!r}).touch(); {end}"], stop)
    asking.join()

    assert found == code


def test_one_that_the_request_found_still_starting_ended_well() -> None:
    with Programs([WAIT, WAIT]) as children:
        children.stop()
    assert children.failed() is None
