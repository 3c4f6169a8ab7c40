"""Failpoints: said in one line, struck when they should, counted before they strike, and nothing at all when off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from connectors import failpoints, telemetry
from connectors.failpoints import Action, Failpoint, FailpointStruck, InvalidFailpoints, Strike, reach
from connectors.settings import Settings

POINT = Failpoint.DELIVERY_CLAIMED


def _struck(times: int) -> list[int]:
    """At which times `POINT` strikes, of so many."""
    found = []
    for time in range(1, times + 1):
        try:
            reach(POINT)
        except FailpointStruck:
            found.append(time)
    return found


def test_one_line_says_what_strikes_and_when() -> None:
    said = "delivery.claimed=kill@3; loop.committed=kill%0.01,seed=7;clock.fired=raise"
    assert failpoints.parse(said) == {
        Failpoint.DELIVERY_CLAIMED: Strike(Action.KILL, at=3),
        Failpoint.LOOP_COMMITTED: Strike(Action.KILL, chance=0.01, seed=7),
        Failpoint.CLOCK_FIRED: Strike(Action.RAISE),
    }
    assert failpoints.parse("") == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("delivery.claimd=kill", "no failpoint 'delivery.claimd'; there are loop.polled"),
        ("delivery.claimed=explode", "it does kill, stop, raise"),
        ("delivery.claimed", "is not NAME=ACTION"),
        ("delivery.claimed=kill@0", "is not NAME=ACTION"),
        ("delivery.claimed=kill%1.5", "between 0 and 1"),
        ("delivery.claimed=kill%.", "between 0 and 1"),
    ],
)
def test_what_is_no_failpoint_is_refused_with_what_there_is(said: str, told: str) -> None:
    with pytest.raises(InvalidFailpoints, match=told.replace(".", r"\.")):
        failpoints.arm(said)
    with pytest.raises(ValueError, match="failpoints"):
        Settings(failpoints=said)
    assert failpoints.armed() is None


def test_off_is_nothing() -> None:
    assert failpoints.armed() is None
    assert _struck(100) == []


def test_it_strikes_the_nth_time_only() -> None:
    with failpoints.armed_with(f"{POINT}=raise@3"):
        assert _struck(10) == [3]
    assert _struck(10) == []


def test_without_a_number_it_strikes_every_time_and_no_other_place() -> None:
    with failpoints.armed_with(f"{POINT}=raise"):
        reach(Failpoint.DELIVERY_CALLED)
        assert _struck(3) == [1, 2, 3]


def test_the_same_seed_strikes_at_the_same_times_and_another_at_others() -> None:
    def struck(seed: int) -> list[int]:
        with failpoints.armed_with(f"{POINT}=raise%0.1,seed={seed}"):
            return _struck(1_000)

    assert struck(7) == struck(7)
    assert struck(7) != struck(8)
    assert 50 < len(struck(7)) < 150


@pytest.mark.parametrize(("action", "died_of"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_a_strike_is_on_disk_before_the_process_is_gone(
    tmp_path: Path, action: str, died_of: signal.Signals
) -> None:
    log = tmp_path / "strikes"
    program = (
        "import sys; from pathlib import Path; from connectors import failpoints\n"
        "failpoints.arm(sys.argv[1], Path(sys.argv[2]))\n"
        "for _ in range(5): failpoints.reach(failpoints.Failpoint.DELIVERY_CLAIMED)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, f"{POINT}={action}@2", str(log)])
    try:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        if action == "stop":
            assert os.WSTOPSIG(status) == died_of
            child.send_signal(signal.SIGCONT)
            _, status = os.waitpid(child.pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0, "it went on where it stood"
        else:
            assert os.waitstatus_to_exitcode(status) == -died_of
    finally:
        child.returncode = 0  # waited for above
    [line] = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["pid"], line["failpoint"], line["action"], line["reached"]) == (child.pid, POINT, action, 2)


def test_health_shows_what_is_armed() -> None:
    server = telemetry.serve("127.0.0.1", 0, CollectorRegistry(), lambda: telemetry.Health(ok=True))
    try:
        url = f"http://{server.host}:{server.port}/health"
        assert httpx.get(url).json() == {"ok": True}
        with failpoints.armed_with(f"{POINT}=raise@3"):
            assert httpx.get(url).json() == {"ok": True, "failpoints": f"{POINT}=raise@3"}
    finally:
        server.close()
