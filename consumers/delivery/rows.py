"""What `lock` and `standing` return, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Row(NamedTuple):
    """A locked delivery."""

    ordinal: int
    delivery_id: str
    tenant_id: str
    product: str
    subject_id: str
    kind: str
    user_id: str
    role: str
    state: str
    attempts: int
    due_at: datetime
    expires_at: datetime | None
    lease_until: datetime | None
    notification_id: str
    nudge_id: str | None
    event_id: str
    lane: str
    seq: int
    first_attempt_at: datetime | None


class Truth(NamedTuple):
    """What is true now of what a delivery rests on."""

    ordinal: int
    standing: str | None
    is_complete: bool
    holder: str | None
    active: bool | None
    first_name: str | None
    email: str | None
    phone: str | None
    applicant: str | None
    advisor: str | None
    tenant_name: str | None
    locale: str
    zone: str
    address: str | None
    content: Mapping[str, object] | None
    frozen_traceparent: str | None
    content_type: str | None
    payload: bytes | None
    occurred_at: datetime | None
    traceparent: str | None
    event_type: str | None
    is_blocked: bool
