"""With 100,000 nudges, what the clock asks is a few descents of an index: it reads what it takes, and little more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from connectors.postgres import clock
from producers import tenants
from producers.clock import timers
from tests.integration.clock.conftest import TENANT, Database

HELD = "held"
READY = 40
WAITING = 30
_NUDGES = """
INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, state, reason, due_at,
                            waits_since, retry_at, created_at, updated_at)
SELECT overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid, %(tenant)s, 'loans', %(prefix)s || n,
       'loans.run_credit_check', 'loans.initiated', uuidv7(),
       CASE WHEN %(reason)s::text IS NULL THEN 'scheduled' ELSE 'cancelled' END::platform.nudge_state, %(reason)s,
       now() + %(due_in)s::interval + n * interval '1 ms', %(waits)s::timestamptz, %(waits)s::timestamptz, now(), now()
  FROM generate_series(1, %(count)s::int) AS n"""
POPULATION = (
    ("later", TENANT, 50_000, "1 hour", None, None),
    ("told", TENANT, 20_000, "-1 day", "superseded", None),
    ("held", HELD, 30_000, "-1 day", None, None),
    ("ready", TENANT, READY, "-1 hour", None, None),
    ("waits", TENANT, WAITING, "-1 hour", None, "2026-01-01T00:00:00Z"),
)
"""Prefix of the subject, tenant, how many, due in, why it was cancelled, since when it waits."""


@pytest.fixture
def crowd(database: Database) -> Database:
    """A hundred thousand nudges of which few are due: most lie ahead, are history, or are a held tenant's."""
    with database.connect(database.owner_dsn) as owner:
        tenants.create(owner, HELD)
        tenants.hold(owner, HELD)
        for prefix, tenant, count, due_in, reason, waits in POPULATION:
            owner.execute(
                _NUDGES.encode(),
                {
                    "prefix": prefix,
                    "tenant": tenant,
                    "count": count,
                    "due_in": due_in,
                    "reason": reason,
                    "waits": waits,
                },
            )
    return database


def reads(conn: psycopg.Connection[Any], name: str, limit: int) -> list[tuple[str, float]]:
    """(how, how many rows) for each access of the statement to nudges, as it was executed."""
    reading, real = clock.read_at(conn)
    values = {
        "now": reading.now(real),
        "real": real,
        "after": "",
        "share": timers.SHARE,
        "limit": limit,
        "most": limit,
    }
    row = conn.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + timers._queries[name], values).fetchone()
    assert row is not None
    return [
        (
            node.get("Index Name", node["Node Type"]),
            node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)),
        )
        for node in _nodes(row[0][0]["Plan"])
        if node.get("Relation Name") == "nudge" and node["Node Type"] != "ModifyTable"
    ]


@pytest.mark.parametrize("counted", [False, True], ids=["nobody has counted", "counted"])
def test_no_question_reads_what_it_does_not_take(crowd: Database, counted: bool) -> None:
    if counted:
        crowd.run("ANALYZE platform.nudge")
    conn = crowd.connect(crowd.consumer_dsn)
    with conn.transaction():
        conn.execute(timers._queries["no_scans"])
        assert reads(conn, "lock_waiting", timers.RETRIES) == [("nudge_waiting", WAITING)]
        assert reads(conn, "lock_due", timers.BATCH) == [("nudge_due", READY)]
    assert sorted(reads(conn, "outlook", 0)) == [("nudge_due", 1), ("nudge_waiting", 1)]
    ((how, rows),) = reads(conn, "waiting", 1_000)
    assert (how, rows) == ("nudge_waiting", WAITING)


def test_a_change_finds_its_rows_by_their_address(crowd: Database) -> None:
    conn = crowd.connect(crowd.consumer_dsn)
    for name in ("fire", "let_wait", "put_back"):
        values = {"addresses": ["(0,1)"], "now": None, "real": None, "longest": None, "shortest": None}
        row = conn.execute(b"EXPLAIN (FORMAT JSON) " + timers._queries[name], values).fetchone()
        assert row is not None
        (scan,) = (node for node in _nodes(row[0][0]["Plan"]) if node["Node Type"].endswith("Scan"))
        assert scan["Node Type"] == "Tid Scan", name


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
