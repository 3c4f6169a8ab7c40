"""The states of the database and those of the program are the same words."""

from __future__ import annotations

from enum import StrEnum

import pytest

from schemas import states
from tests.integration.postgres.conftest import Conn


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("tenant_state", states.TenantState),
        ("nudge_state", states.NudgeState),
        ("delivery_state", states.DeliveryState),
        ("decision_outcome", states.DecisionOutcome),
        ("dead_letter_state", states.DeadLetterState),
    ],
)
def test_an_enum_is_the_same_on_both_sides(owner: Conn, name: str, ours: type[StrEnum]) -> None:
    found = owner.execute(
        "SELECT enumlabel FROM pg_enum WHERE enumtypid = %s::regtype ORDER BY enumsortorder",
        [f"platform.{name}"],
    ).fetchall()
    assert [label for (label,) in found] == list(ours)


def test_the_reasons_of_a_cancelled_nudge(owner: Conn) -> None:
    row = owner.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'nudge_reason_check'"
    ).fetchone()
    assert row is not None
    assert {word for word in row[0].split("'")[1::2] if word} == set(states.NudgeReason)


@pytest.mark.parametrize("reason", list(states.DeadReason))
def test_every_reason_of_a_dead_letter_fits(owner: Conn, reason: str) -> None:
    row = owner.execute(
        "SELECT %s ~ '^[a-z_]{1,40}$' AND pg_get_constraintdef(oid) LIKE '%%^[a-z_]{1,40}$%%'"
        " FROM pg_constraint WHERE conname = 'dead_letter_reason_check'",
        [reason],
    ).fetchone()
    assert row == (True,)


@pytest.mark.parametrize(
    "reason",
    [
        *states.SuppressReason,
        *states.FailReason,
        *states.HoldReason,
        states.no_longer("advisor"),
        states.no_longer("payload.user_id"),
    ],
)
def test_every_reason_of_a_delivery_fits(owner: Conn, reason: str) -> None:
    pattern = "^[a-z_.0-9]{1,80}$"
    row = owner.execute(
        "SELECT %s ~ %s AND strpos(pg_get_constraintdef(oid), %s) > 0"
        " FROM pg_constraint WHERE conname = 'delivery_reason_check'",
        [reason, pattern, pattern],
    ).fetchone()
    assert row == (True,)
