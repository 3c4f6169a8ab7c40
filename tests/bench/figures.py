"""A figure: what was measured, in which unit, from how many samples."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of `bench.json`: a `value`, or percentiles. `min` and `max` are of the rounds or the samples."""

    name: str
    variant: str
    unit: str
    rounds: int
    samples: int
    min: float
    max: float
    value: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    note: str | None = None
    """What a reader must know to compare it: sizes, where the clock was started."""

    def as_json(self) -> dict[str, Any]:
        """As it is written: without what it does not have, rounded to what is meaningful."""
        return {
            key: round(value, 4) if isinstance(value, float) else value
            for key, value in asdict(self).items()
            if value is not None
        }


def of_rounds(
    name: str, variant: str, unit: str, values: Sequence[float], samples: int, note: str | None = None
) -> Figure:
    """One value per round: their median. `samples` is what one round looked at."""
    middle = statistics.median(values)
    return Figure(name, variant, unit, len(values), samples, min(values), max(values), middle, note=note)


def of_latencies(
    name: str, variant: str, unit: str, rounds: Sequence[Sequence[float]], note: str | None = None
) -> Figure:
    """Many values per round: the median over the rounds of each percentile; min and max of all samples."""
    p50, p95, p99 = (statistics.median(percentile(each, q) for each in rounds) for q in (0.5, 0.95, 0.99))
    every = [value for each in rounds for value in each]
    return Figure(
        name, variant, unit, len(rounds), len(every), min(every), max(every), None, p50, p95, p99, note
    )


def percentile(values: Sequence[float], q: float) -> float:
    """The nearest-rank percentile: a value that was really measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
