"""What an operator may do to a delivery, by its state, and why not the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from consumers.delivery.operate import Named, why_not_cancelled, why_not_retried
from schemas.states import DeliveryState

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def named(state: DeliveryState, reason: str | None = None) -> Named:
    return Named("d-1", "acme", None, state, reason, AT)


def test_only_what_is_on_hold_is_retried() -> None:
    assert {state for state in DeliveryState if why_not_retried(named(state)) is None} == {DeliveryState.HELD}


def test_only_what_waits_is_cancelled() -> None:
    assert {state for state in DeliveryState if why_not_cancelled(named(state)) is None} == {
        DeliveryState.QUEUED,
        DeliveryState.HELD,
    }


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (DeliveryState.QUEUED, "queued already, and due 2026-12-01T09:00:00Z"),
        (DeliveryState.SENDING, "ask again when its outcome is known"),
        (DeliveryState.SENT, "again would be twice"),
        (DeliveryState.FAILED, "has failed (rejected), which is an end"),
        (DeliveryState.SUPPRESSED, "is suppressed (rejected), which is an end"),
        (DeliveryState.EXPIRED, "told too late"),
    ],
)
def test_the_rest_says_why_it_is_not_retried(state: DeliveryState, says: str) -> None:
    assert says in (why_not_retried(named(state, "rejected")) or "")


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (DeliveryState.SENDING, "nobody can call it back"),
        (DeliveryState.SENT, "nobody can call it back"),
        (DeliveryState.FAILED, "failed already"),
        (DeliveryState.SUPPRESSED, "suppressed already"),
        (DeliveryState.EXPIRED, "expired already"),
    ],
)
def test_the_rest_says_why_it_is_not_cancelled(state: DeliveryState, says: str) -> None:
    assert says in (why_not_cancelled(named(state)) or "")
