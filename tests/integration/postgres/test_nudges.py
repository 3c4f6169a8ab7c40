"""The invariant of supersession and the transitions of a nudge, as the database keeps them."""

from __future__ import annotations

import uuid
from itertools import product

import pytest
from psycopg import errors

from tests.integration.postgres.conftest import Conn

STATES = ("scheduled", "pending", "sent", "cancelled")
ALLOWED = {
    ("scheduled", "pending"),
    ("pending", "sent"),
    ("scheduled", "cancelled"),
    ("pending", "cancelled"),
} | {(state, state) for state in STATES}
WAY_TO = {"scheduled": (), "pending": ("pending",), "sent": ("pending", "sent"), "cancelled": ("cancelled",)}


def arm(conn: Conn, tenant: str, subject: str = "L-1", **columns: object) -> str:
    nudge = uuid.uuid4().hex
    nudge_id = f"{nudge[:12]}8{nudge[13:16]}8{nudge[17:]}"
    row = {
        "nudge_id": nudge_id,
        "tenant": tenant,
        "subject": subject,
        "state": "scheduled",
        "reason": None,
        **columns,
    }
    conn.execute(
        "INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step,"
        " event_id, state, reason, due_at, created_at, updated_at)"
        " VALUES (%(nudge_id)s, %(tenant)s, 'loans', %(subject)s, 'k', 'loans.initiated', uuidv7(),"
        " %(state)s::platform.nudge_state, %(reason)s, now(), now(), now())",
        row,
    )
    return nudge_id


def move(conn: Conn, nudge: str, state: str) -> None:
    moved = conn.execute(
        "UPDATE platform.nudge SET state = %s::platform.nudge_state, reason = %s WHERE nudge_id = %s",
        [state, "ended" if state == "cancelled" else None, nudge],
    )
    assert moved.rowcount == 1


@pytest.mark.parametrize(("before", "after"), list(product(STATES, STATES)))
def test_transitions(consumer: Conn, tenant: str, before: str, after: str) -> None:
    nudge = arm(consumer, tenant)
    for state in WAY_TO[before]:
        move(consumer, nudge, state)
    if (before, after) in ALLOWED:
        move(consumer, nudge, after)
    else:
        with pytest.raises(errors.CheckViolation, match=f"cannot go from {before} to {after}"):
            move(consumer, nudge, after)


@pytest.mark.parametrize("state", ["pending", "sent"])
def test_a_nudge_begins_scheduled(consumer: Conn, tenant: str, state: str) -> None:
    with pytest.raises(errors.CheckViolation, match=f"cannot go from nothing to {state}"):
        arm(consumer, tenant, state=state)


def test_a_nudge_superseded_in_its_own_batch_begins_cancelled(consumer: Conn, tenant: str) -> None:
    arm(consumer, tenant)
    arm(consumer, tenant, state="cancelled", reason="superseded")


@pytest.mark.parametrize("live", ["scheduled", "pending"])
def test_at_most_one_live_nudge_per_lead(consumer: Conn, tenant: str, live: str) -> None:
    first = arm(consumer, tenant)
    for state in WAY_TO[live]:
        move(consumer, first, state)
    with pytest.raises(errors.UniqueViolation, match="nudge_one_live_per_lead"):
        arm(consumer, tenant)
    arm(consumer, tenant, subject="L-2")
    move(consumer, first, "cancelled")
    arm(consumer, tenant)


def test_a_cancelled_nudge_says_why(consumer: Conn, tenant: str) -> None:
    nudge = arm(consumer, tenant)
    with pytest.raises(errors.CheckViolation, match="nudge_reason_when_cancelled"):
        consumer.execute("UPDATE platform.nudge SET state = 'cancelled' WHERE nudge_id = %s", [nudge])
    with pytest.raises(errors.CheckViolation, match="nudge_reason_check"):
        consumer.execute(
            "UPDATE platform.nudge SET state = 'cancelled', reason = 'because' WHERE nudge_id = %s", [nudge]
        )


def test_ids_are_derived_ones(consumer: Conn, tenant: str) -> None:
    with pytest.raises(errors.CheckViolation, match="nudge_nudge_id_check"):
        arm(consumer, tenant, nudge_id=str(uuid.uuid4()))


@pytest.mark.parametrize("column", ["tenant_id", "subject_id", "event_id", "kind"])
def test_what_a_nudge_is_never_changes(consumer: Conn, tenant: str, column: str) -> None:
    arm(consumer, tenant)
    with pytest.raises(errors.InsufficientPrivilege):
        consumer.execute(f"UPDATE platform.nudge SET {column} = {column}".encode())
