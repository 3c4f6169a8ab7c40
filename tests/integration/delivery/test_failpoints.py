"""Killed, or stopped beyond the lease, at every step of claim → call → record: one visible effect per key, in order,
and a late worker overwrites nothing.
"""

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
from typing import Any

import pytest

from connectors.failpoints import Failpoint
from tests.integration.delivery.conftest import Bench

WITHIN_S = 30.0
POINTS = [point for point in Failpoint if point.startswith("delivery.")]
IN_TRANSACTION = {Failpoint.DELIVERY_LEASED, Failpoint.DELIVERY_NOTED}
"""What a process has locked, nobody touches until it goes on."""
CALLED = {Failpoint.DELIVERY_CALLED, Failpoint.DELIVERY_NOTED}
"""The provider has the first message, and the database does not know."""


@contextmanager
def child(bench: Bench, said: str = "", log: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A delivery process of its own; gone at the end, whatever became of it."""
    environment = os.environ | {
        "TELLONCE_DATABASE_URL": bench.stack.consumer_dsn,
        "TELLONCE_FAILPOINTS": said,
        "TELLONCE_FAILPOINTS_LOG": str(log or ""),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.delivery.child", str(bench.accounts)],
        env=environment,
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            process.wait(WITHIN_S)
        if process.stdout is not None:
            process.stdout.close()


def until(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.01)


def struck(log: Path) -> list[tuple[str, str]]:
    """What happened, by the record that is written before it does."""
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [(line["failpoint"], line["action"]) for line in lines]


def conversation(bench: Bench) -> list[str]:
    """Three messages to one person about one lead: their order is promised."""
    first = bench.ready()
    later = []
    for kind in ("sanctioned", "disbursed"):
        event = bench.event(kind, amount="1000.00", currency="EUR")
        bench.decide(event)
        later.append(bench.delivery(event, kind=f"loans.{kind}"))
    return [first, *later]


def rows(bench: Bench) -> list[tuple[Any, ...]]:
    """The tenant's deliveries, whole."""
    return bench.owner.execute(
        "SELECT * FROM platform.delivery WHERE tenant_id = %s ORDER BY seq", [bench.tenant]
    ).fetchall()


def all_sent(bench: Bench, deliveries: list[str]) -> Callable[[], bool]:
    """Whether they are; a pause before another try is over at once."""

    def look() -> bool:
        bench.owner.execute(
            "UPDATE platform.delivery SET due_at = now() WHERE tenant_id = %s AND reason = 'retry'",
            [bench.tenant],
        )
        return all(bench.row(each)[0] == "sent" for each in deliveries)

    return look


def let_leases_run_out(bench: Bench) -> int:
    return bench.owner.execute(
        "UPDATE platform.delivery SET lease_until = now() - interval '1 second'"
        " WHERE tenant_id = %s AND state = 'sending'",
        [bench.tenant],
    ).rowcount


def has_one_effect_each_in_order(bench: Bench, deliveries: list[str]) -> None:
    assert [each.key for each in bench.arrivals()] == deliveries


@pytest.mark.parametrize("point", POINTS)
def test_killed_there_each_message_has_one_effect_in_its_order(
    bench: Bench, tmp_path: Path, point: Failpoint
) -> None:
    deliveries, log = conversation(bench), tmp_path / "strikes"
    with child(bench, f"{point}=kill@1", log) as doomed:
        assert doomed.wait(WITHIN_S) == -signal.SIGKILL
    assert struck(log) == [(point, "kill")], "it happened, and was counted before it did"
    let_leases_run_out(bench)
    with child(bench) as successor:
        until(all_sent(bench, deliveries), lambda: rows(bench))
        successor.terminate()
        assert successor.wait(WITHIN_S) == 0
    has_one_effect_each_in_order(bench, deliveries)
    assert bench.arrivals()[0].repeats == (1 if point in CALLED else 0)


@pytest.mark.parametrize("point", POINTS)
def test_stopped_there_beyond_its_lease_it_overwrites_nothing(
    bench: Bench, tmp_path: Path, point: Failpoint
) -> None:
    deliveries, log = conversation(bench), tmp_path / "strikes"
    with child(bench, f"{point}=stop@1", log) as late:
        _, status = os.waitpid(late.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert struck(log) == [(point, "stop")]
        with child(bench) as other:
            if point not in IN_TRANSACTION:
                let_leases_run_out(bench)
                until(all_sent(bench, deliveries), lambda: rows(bench))
            before = rows(bench)
            late.send_signal(signal.SIGCONT)
            until(all_sent(bench, deliveries), lambda: rows(bench))
            for process in (late, other):
                process.terminate()
                assert process.wait(WITHIN_S) == 0
        if point not in IN_TRANSACTION:
            assert rows(bench) == before
    has_one_effect_each_in_order(bench, deliveries)
