"""The closed list of a consumer process's metrics. A name is added here and nowhere else."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)
"""From one connector poll to a consumer that was down for minutes."""
_BATCH = (1, 5, 20, 100, 500, 1000, 2000)


class RuntimeMetrics:
    """One set per process, on a registry of its own; every metric is labelled with the group."""

    def __init__(self, registry: CollectorRegistry, group: str) -> None:
        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"tellonce_{name}", what, ("group", *labels), registry=registry)

        self._group = group
        self._decisions = counter("decisions", "Events decided.", "outcome", "reason")
        self._dead = counter("dead_letters", "Records that became dead letters.", "reason")
        self._skipped = counter("records_skipped", "Records decided before: duplicates and replays.")
        self._forgotten = counter("records_forgotten", "Records past the horizon whose rows are retired.")
        self._retries = counter("batch_retries", "Batches rolled back and tried again.", "kind")
        self._rewinds = counter("rewinds", "Positions set back to what Kafka still holds.", "cause")
        self._batch = Histogram(
            "tellonce_batch_records", "Records per batch.", ("group",), buckets=_BATCH, registry=registry
        )
        self._seconds = Histogram(
            "tellonce_batch_seconds", "From the decoded batch to its commit.", ("group",), registry=registry
        )
        self._capture = Histogram(
            "tellonce_capture_latency_seconds",
            "From a row's transaction to its record in the consumer's hands.",
            ("group",),
            buckets=_LATENCY_S,
            registry=registry,
        )
        self._partitions = Gauge(
            "tellonce_assigned_partitions",
            "Partitions that this process reads.",
            ("group",),
            registry=registry,
        )

    def decided(self, outcome: str, reason: str | None, count: int) -> None:
        self._decisions.labels(self._group, outcome, reason or "").inc(count)

    def dead(self, reason: str) -> None:
        self._dead.labels(self._group, reason).inc()

    def committed(self, records: int, skipped: int, forgotten: int, seconds: float) -> None:
        self._batch.labels(self._group).observe(records)
        self._seconds.labels(self._group).observe(seconds)
        self._skipped.labels(self._group).inc(skipped)
        self._forgotten.labels(self._group).inc(forgotten)

    def captured(self, seconds: float) -> None:
        self._capture.labels(self._group).observe(max(seconds, 0.0))

    def retried(self, kind: str) -> None:
        self._retries.labels(self._group, kind).inc()

    def rewound(self, cause: str) -> None:
        self._rewinds.labels(self._group, cause).inc()

    def assigned(self, partitions: int) -> None:
        self._partitions.labels(self._group).set(partitions)
