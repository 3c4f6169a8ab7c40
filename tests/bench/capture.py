"""`capture_latency_ms`: from a commit to the callback of a consumer that has our own settings."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Collection, Sequence
from typing import Final

import psycopg
from confluent_kafka import Consumer, TopicPartition

from connectors.kafka.clients import consumer_config
from connectors.kafka.offsets import end_offsets
from connectors.settings import Latency
from tests.bench.figures import Figure, of_latencies
from tests.bench.rig import WITHIN_S, Rig

NAMES: Final = ("capture_latency_ms",)
TOPIC: Final = "events.loans"
RATE: Final = 200
WARM_UP: Final = 5 * RATE
ROUNDS: Final = 5
ROUND: Final = 5 * RATE
PROFILES: Final[Sequence[Latency]] = ("balanced", "low")


def measure(rig: Rig, _wanted: Collection[str]) -> list[Figure]:
    """Both latency profiles, one after the other."""
    tenant = rig.tenant("capture")
    figures = []
    rig.stream()
    rig.warm()
    for latency in PROFILES:
        rig.stream(latency)
        figures += _profile(rig, tenant, latency)
        rig.say(f"capture_latency_ms {latency}: p50 {figures[-2].p50:.1f} ms, p99 {figures[-2].p99:.1f} ms")
    return figures


class _Writer(threading.Thread):
    """Commits at a steady pace, each event its own transaction, and notes when."""

    def __init__(self, dsn: str, tenant: str, count: int) -> None:
        super().__init__(name="writer", daemon=True)
        self._dsn = dsn
        self._tenant = tenant
        self._count = count
        self.sent: dict[str, float] = {}
        self.returned: dict[str, float] = {}
        self.took_s = 0.0

    def run(self) -> None:
        with psycopg.connect(self._dsn) as conn:
            began = time.perf_counter()
            for number in range(self._count):
                time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
                row = conn.execute(
                    "SELECT platform.append(%s, 'loans', %s, 'loans.initiated',"
                    ' \'{"applicant_id": "a"}\')::text',
                    [self._tenant, f"L-{number % 500}"],
                ).fetchone()
                assert row is not None
                event_id = str(row[0])
                self.sent[event_id] = time.perf_counter()
                conn.commit()
                self.returned[event_id] = time.perf_counter()
            self.took_s = time.perf_counter() - began


def _profile(rig: Rig, tenant: str, latency: Latency) -> list[Figure]:
    consumer = Consumer(consumer_config(rig.settings(latency), f"bench-{uuid.uuid4().hex}"))
    ends = end_offsets(rig.admin, [TOPIC])[TOPIC].partitions
    consumer.assign([TopicPartition(TOPIC, number, offset) for number, offset in ends.items()])
    writer = _Writer(rig.stack.domain_dsn, tenant, WARM_UP + ROUNDS * ROUND)
    writer.start()
    try:
        arrived = _arrivals(consumer, WARM_UP + ROUNDS * ROUND)
    finally:
        consumer.close()
    writer.join()
    reached = len(writer.sent) / writer.took_s
    note = f"{reached:.0f} events/s, each its own transaction; warm-up of {WARM_UP} events dropped"
    return [
        of_latencies(
            "capture_latency_ms",
            latency,
            "ms",
            _rounds(writer.returned, arrived),
            f"from COMMIT's return; {note}",
        ),
        of_latencies(
            "capture_latency_ms",
            f"{latency}, with the commit",
            "ms",
            _rounds(writer.sent, arrived),
            f"from COMMIT's sending; {note}",
        ),
    ]


def _arrivals(consumer: Consumer, count: int) -> dict[str, float]:
    """When each event was first handed to us."""
    arrived: dict[str, float] = {}
    deadline = time.monotonic() + WITHIN_S
    while len(arrived) < count:
        message = consumer.poll(0.2)
        now = time.perf_counter()
        if message is None or message.error() is not None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(arrived)} of {count} events arrived within {WITHIN_S:.0f} s")
            continue
        headers = dict(message.headers() or ())
        event_id = headers["ce_id"]
        assert isinstance(event_id, bytes)
        arrived.setdefault(event_id.decode(), now)
    return arrived


def _rounds(begun: dict[str, float], arrived: dict[str, float]) -> list[list[float]]:
    """Milliseconds in the order of the commits, without the warm-up, by round."""
    waited = [1_000 * (arrived[event_id] - at) for event_id, at in begun.items()][WARM_UP:]
    return [waited[start : start + ROUND] for start in range(0, len(waited), ROUND)]
