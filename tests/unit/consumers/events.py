"""Events of the loan journey, as pure data."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

from schemas.envelope import Event, EventId, EventType, ProductName, SubjectId, TenantId
from schemas.ids import uuid7_from

TEN = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
_numbers = itertools.count()


def event(
    name: str,
    minute: float = 0,
    *,
    subject: str = "L-1",
    tenant: str = "acme",
    recorded: float | None = None,
    product: str = "loans",
) -> Event:
    """A loan event that occurred `minute` minutes after ten, recorded then unless said otherwise."""
    occurred = TEN + timedelta(minutes=minute)
    recorded_at = occurred if recorded is None else TEN + timedelta(minutes=recorded)
    return Event(
        EventId(uuid7_from(int(recorded_at.timestamp() * 1000), str(next(_numbers)).encode())),
        TenantId(tenant),
        ProductName(product),
        SubjectId(subject),
        EventType(f"{product}.{name}"),
        occurred,
        recorded_at,
        {},
    )
