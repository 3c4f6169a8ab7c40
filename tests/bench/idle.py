"""`idle_cpu`: what the whole costs while nothing happens."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

import psutil

from deploy.local.running import ALL
from tests.bench.children import running
from tests.bench.figures import Figure, of_rounds
from tests.bench.rig import Rig, until
from tests.bench.supersession import WORKER

NAMES: Final = ("idle_cpu",)
SETTLE_S: Final = 20.0
"""Partitions are assigned, compilers are done, the supervisor of each engine has calmed down."""
ROUNDS: Final = 5
ROUND_S: Final = 10.0
PRODUCT: Final = "loans"

Spent = Mapping[int, float]


def measure(rig: Rig, _wanted: Collection[str]) -> list[Figure]:
    """The engines, one consumer and the clock, in the frugal profile; by part and together."""
    rig.stream("frugal")
    settings = rig.settings("frugal")
    with (
        running(WORKER, [PRODUCT], settings, rig.log("idle"), latency="frugal") as consumer,
        running("tests.bench.clock", [], settings, rig.log("clock"), latency="frugal") as clock,
    ):
        rig.say(f"idle_cpu: settling for {SETTLE_S:.0f} s, then {ROUNDS} times {ROUND_S:.0f} s of nothing")
        until(
            lambda: rig.done(f"supersession.{PRODUCT}") == rig.in_topic(f"events.{PRODUCT}"),
            "nothing is left",
        )
        time.sleep(SETTLE_S)
        parts: dict[str, int] = {name: rig.stack.process(name).engine.number for name in ALL}
        parts |= {"consumer": consumer.seen.pid, "clock": clock.seen.pid}
        rounds = [_round(parts) for _ in range(ROUNDS)]
        consumer.check()
        clock.check()
    together = [sum(each.values()) for each in rounds]
    note = f"cores; {', '.join(parts)}; {ROUND_S:.0f} s each"
    return [
        of_rounds("idle_cpu", "frugal", "cores", together, 1, note),
        *(
            of_rounds("idle_cpu", f"frugal, {name}", "cores", [each[name] for each in rounds], 1)
            for name in parts
        ),
    ]


def _round(parts: Mapping[str, int]) -> dict[str, float]:
    before = {name: _spent(number) for name, number in parts.items()}
    began = time.perf_counter()
    time.sleep(ROUND_S)
    took = time.perf_counter() - began
    return {name: _between(before[name], _spent(number)) / took for name, number in parts.items()}


def _between(before: Spent, after: Spent) -> float:
    """CPU seconds of those still there; one that was born meanwhile has spent all of its own."""
    return sum(spent - before.get(number, 0.0) for number, spent in after.items())


def _spent(number: int) -> Spent:
    """CPU seconds of a process and its descendants, by process id."""
    process = psutil.Process(number)
    return {each.pid: spent for each in _tree(process) if (spent := _seconds(each)) is not None}


def _tree(process: psutil.Process) -> Sequence[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _seconds(process: psutil.Process) -> float | None:
    with suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return None
