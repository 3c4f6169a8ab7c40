"""Events of the work log, drawn as the real loan log is: leads that repeat steps and sometimes fall back."""

from __future__ import annotations

import random
from collections.abc import Sequence

ACTIVITIES = (
    "worklog.lead_handled",
    "worklog.lead_handled",
    "worklog.completing_application",
    "worklog.completing_application",
    "worklog.called_after_offers",
    "worklog.called_after_offers",
    "worklog.validating_application",
    "worklog.validating_application",
    "worklog.called_incomplete",
    "worklog.fraud_assessed",
)


def draw(
    seed: int, leads: int, count: int, tenants: Sequence[str], prefix: str
) -> list[tuple[str, str, str]]:
    """(subject, type, tenant) in order; the same for the same seed. A lead has one tenant."""
    dice = random.Random(seed)
    drawn = []
    for _ in range(count):
        lead = dice.randrange(leads)
        drawn.append((f"{prefix}-{lead}", dice.choice(ACTIVITIES), tenants[lead % len(tenants)]))
    return drawn
