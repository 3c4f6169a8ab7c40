"""What the figures must reach, on two cores with the whole stack on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.bench.figures import Figure

Statistic = Literal["value", "p50", "p99"]


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for one statistic of one figure."""

    name: str
    variant: str
    statistic: Statistic
    bound: float
    at_least: bool = False

    def met_by(self, figure: Figure) -> bool | None:
        """None when it is not about this figure."""
        if (figure.name, figure.variant) != (self.name, self.variant):
            return None
        found: float | None = getattr(figure, self.statistic)
        assert found is not None
        return found >= self.bound if self.at_least else found <= self.bound

    def __str__(self) -> str:
        what = "" if self.statistic == "value" else f"{self.statistic} "
        return f"{what}{'≥' if self.at_least else '≤'} {self.bound:,g}"


TARGETS: Sequence[Target] = (
    Target("capture_latency_ms", "balanced", "p50", 10),
    Target("capture_latency_ms", "balanced", "p99", 40),
    Target("capture_latency_ms", "low", "p50", 4),
    Target("capture_latency_ms", "low", "p99", 15),
    Target("supersession_rate", "worklog", "value", 15_000, at_least=True),
    Target("supersession_vs_raw", "worklog", "value", 0.4, at_least=True),
    Target("timers_rate", "worklog", "value", 5_000, at_least=True),
    Target("end_to_end_latency_ms", "balanced", "p50", 25),
    Target("end_to_end_latency_ms", "balanced", "p99", 100),
    Target("end_to_end_latency_ms", "low", "p50", 12),
    Target("end_to_end_latency_ms", "low", "p99", 50),
    Target("pipeline_rate", "live", "value", 2_250, at_least=True),
    Target("drain_rate", "backlog", "value", 4_000, at_least=True),
    Target("fairness_ratio", "backlog", "value", 2),
    Target("real_job_rate", "decide", "value", 7_100, at_least=True),
    Target("real_job_rate", "decide_live", "value", 2_000, at_least=True),
    Target("real_job_rate", "deliver", "value", 2_200, at_least=True),
    Target("growth_history", "ratio", "value", 1.2),
    Target("growth_tenants", "ratio", "value", 1.2),
    Target("rss_mb", "supersession", "value", 150),
    Target("idle_cpu", "frugal", "value", 0.1),
)


def of(figure: Figure) -> list[tuple[Target, bool]]:
    """The targets of a figure and whether each is met; empty for what is only reported."""
    judged = ((target, target.met_by(figure)) for target in TARGETS)
    return [(target, met) for target, met in judged if met is not None]
