"""The loan log as tests read it: the real one where it lies beside the project, else one drawn like it.

Nothing depends on the real one being there; where it is, its published counts are what must come out.
"""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

REAL = Path(__file__).parents[4] / "shared" / "data" / "bpi_12_w.csv"
RANK = {"1": 0, "3": 1, "5": 2, "6": 3, "4": 4}
"""The journey's order of the log's activities; `2` is a lifecycle event."""
TYPES = {
    "1": "worklog.lead_handled",
    "3": "worklog.completing_application",
    "5": "worklog.called_after_offers",
    "6": "worklog.validating_application",
    "4": "worklog.called_incomplete",
    "2": "worklog.fraud_assessed",
}

Row = tuple[str, str, str]
"""Lead, activity, time: the log's columns."""


@dataclass(frozen=True)
class Expected:
    """What serial execution in time order comes to."""

    dropped: int
    cancelled: int
    lifecycle: int
    live: dict[str, int]


def rows(leads: int | None = None) -> list[Row]:
    """The log, or its first `leads` leads, as it stands in the file."""
    if REAL.is_file():
        with REAL.open(newline="") as file:
            every = [(r["CaseID"], r["ActivityID"], r["CompleteTimestamp"]) for r in csv.DictReader(file)]
    else:
        every = _drawn(leads or 9_658)
    if leads is None:
        return every
    first = set(list(dict.fromkeys(lead for lead, _, _ in every))[:leads])
    return [row for row in every if row[0] in first]


def write(path: Path, log: Sequence[Row]) -> None:
    """The log as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("CaseID", "ActivityID", "CompleteTimestamp"))
        writer.writerows(log)


def expected(log: Sequence[Row]) -> Expected:
    """The journey played by hand, independent of the code under test."""
    furthest: dict[str, int] = {}
    dropped = cancelled = lifecycle = 0
    for lead, activity, _ in sorted(log, key=lambda row: row[2]):
        if activity == "2":
            lifecycle += 1
        elif RANK[activity] <= furthest.get(lead, -1):
            dropped += 1
        else:
            cancelled += lead in furthest
            furthest[lead] = RANK[activity]
    by_rank = {rank: activity for activity, rank in RANK.items()}
    return Expected(
        dropped, cancelled, lifecycle, dict(Counter(TYPES[by_rank[rank]] for rank in furthest.values()))
    )


def _drawn(leads: int) -> list[Row]:
    """Leads that repeat steps often and sometimes fall back, as the real ones do."""
    draw = random.Random(2012)
    begin = datetime(2011, 10, 1, tzinfo=UTC)
    log: list[Row] = []
    for lead in range(leads):
        at = begin + timedelta(minutes=draw.randrange(200_000))
        for _ in range(draw.randrange(1, 15)):
            at += timedelta(seconds=draw.randrange(1, 90_000))
            log.append((str(100_000 + lead), draw.choice("1133556642"), f"{at:%Y-%m-%d %H:%M:%S}"))
    return log
