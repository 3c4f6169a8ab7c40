"""How fast one supersession process decides a topic that is full: its rate, beside a bare consumer's, and its cost."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tests.bench import raw
from tests.bench.children import running
from tests.bench.figures import Figure, of_rounds
from tests.bench.journeys import draw
from tests.bench.rig import WITHIN_S, Rig, until

NAMES: Final = ("supersession_rate", "supersession_vs_raw", "rss_mb")
EVENTS: Final = 100_000
LEADS: Final = 10_000
ROUNDS: Final = 5
PRODUCT: Final = "worklog"
TOPIC: Final = f"events.{PRODUCT}"
GROUP: Final = f"supersession.{PRODUCT}"
WORKER: Final = "tests.integration.runtime.worker"
LOOK_EVERY_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Round:
    """One run through the topic."""

    rate: float
    user_us: float
    system_us: float
    rss_mb: float


def measure(rig: Rig, wanted: Collection[str]) -> list[Figure]:
    """A warm-up and five rounds, each on fresh state; in each, the bare consumer goes first."""
    rig.stream()
    rig.say(f"filling {TOPIC} with {EVENTS:,} events of {LEADS:,} leads")
    rig.fill(PRODUCT, draw(1, LEADS, EVENTS, [rig.tenant("rates")], "lead"))
    bare: list[float] = []
    rounds: list[Round] = []
    for number in range(ROUNDS + 1):
        if "supersession_vs_raw" in wanted:
            bare.append(_bare(rig))
        rounds.append(one_round(rig, EVENTS))
        beside = f", bare {bare[-1]:,.0f}/s" if bare else ""
        name = f"round {number}" if number else "warm-up"
        rig.say(f"supersession {name}: {rounds[-1].rate:,.0f} events/s{beside}")
    return _figures(rounds[1:], bare[1:])


def one_round(rig: Rig, count: int) -> Round:
    """One process, from its first commit to its last, seen from outside through its own progress."""
    rig.forget(GROUP)
    with running(WORKER, [PRODUCT], rig.settings(), rig.log(GROUP)) as child:
        deadline = time.monotonic() + WITHIN_S
        while not (first := rig.done(GROUP)):
            child.check()
            _not_later_than(deadline)
            time.sleep(LOOK_EVERY_S)
        began, before = time.perf_counter(), child.cpu_s()
        while rig.done(GROUP) < count:
            child.check()
            _not_later_than(deadline)
            time.sleep(LOOK_EVERY_S)
        took, after = time.perf_counter() - began, child.cpu_s()
        rss = child.rss_mb()
    decided = rig.superuser.execute("SELECT count(*) FROM platform.decision").fetchone()
    assert decided == (count,), f"{decided} decisions for {count} events"
    events = count - first
    user, system = (1e6 * (now - then) / events for now, then in zip(after, before, strict=True))
    return Round(events / took, user, system, rss)


def _bare(rig: Rig) -> float:
    rig.superuser.execute(raw.TABLE)
    rig.superuser.execute("TRUNCATE platform.bench_raw")
    rig.superuser.execute("GRANT INSERT ON platform.bench_raw TO consumer")
    rig.superuser.execute("CHECKPOINT")
    log = rig.log("raw")
    with running("tests.bench.raw", [TOPIC, str(EVENTS)], rig.settings(), log) as child:
        child.wait(WITHIN_S)
    until(lambda: log.read_text().endswith("\n"), "the bare consumer has said its rate")
    said = json.loads(log.read_text().splitlines()[-1])
    return float(said["events"]) / float(said["seconds"])


def _figures(rounds: list[Round], bare: list[float]) -> list[Figure]:
    rates = [each.rate for each in rounds]
    note = f"{EVENTS:,} events of {LEADS:,} leads, JSON bodies, in Kafka beforehand; first commit to last"
    figures = [
        of_rounds("supersession_rate", PRODUCT, "events/s", rates, EVENTS, note),
        of_rounds(
            "supersession_cpu_us_per_event",
            "user",
            "µs",
            [each.user_us for each in rounds],
            EVENTS,
            "of the consumer process, librdkafka's threads included",
        ),
        of_rounds(
            "supersession_cpu_us_per_event", "system", "µs", [each.system_us for each in rounds], EVENTS
        ),
        of_rounds(
            "rss_mb", "supersession", "MB", [each.rss_mb for each in rounds], 1, f"after {EVENTS:,} events"
        ),
    ]
    if bare:
        ratios = [ours / theirs for ours, theirs in zip(rates, bare, strict=True)]
        figures += [
            of_rounds("supersession_vs_raw", PRODUCT, "ratio", ratios, EVENTS, "side by side, per round"),
            of_rounds("raw_rate", PRODUCT, "events/s", bare, EVENTS, "consume, decode, COPY, commit"),
        ]
    return figures


def _not_later_than(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"{GROUP} did not get through within {WITHIN_S:.0f} s")
