"""The closed list of what a delivery process counts beside the runtime's own metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from connectors.providers.model import Answer
from consumers.delivery.decide import Verdict

_CALL_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15)


class DeliveryMetrics:
    """One set per process, labelled with the channel."""

    def __init__(self, registry: CollectorRegistry, channel: str) -> None:
        self._channel = channel
        self._claims = Counter(
            "tellonce_claims", "What claims decided.", ("channel", "verdict", "reason"), registry=registry
        )
        self._answers = Counter(
            "tellonce_provider_answers", "What providers answered.", ("channel", "outcome"), registry=registry
        )
        self._retries = Counter(
            "tellonce_claim_retries",
            "Rounds rolled back and tried again.",
            ("channel", "kind"),
            registry=registry,
        )
        self._calls = Histogram(
            "tellonce_provider_call_seconds",
            "From the call's begin to the provider's answer.",
            ("channel",),
            buckets=_CALL_S,
            registry=registry,
        )
        self._in_flight = Gauge(
            "tellonce_calls_in_flight", "Calls under way.", ("channel",), registry=registry
        )

    def claimed(self, verdict: Verdict, reason: str | None) -> None:
        self._claims.labels(self._channel, verdict.value, reason or "").inc()

    def answered(self, answer: Answer, seconds: float) -> None:
        self._answers.labels(self._channel, answer.outcome.value).inc()
        self._calls.labels(self._channel).observe(seconds)

    def retried(self, kind: str) -> None:
        self._retries.labels(self._channel, kind).inc()

    def in_flight(self, calls: int) -> None:
        self._in_flight.labels(self._channel).set(calls)
