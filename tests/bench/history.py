"""A past to be slow because of: tenants, outbox rows, decisions, journeys and nudges of the last two weeks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg

DAYS: Final = 13

_TENANTS = (
    "INSERT INTO platform.tenant (tenant_id, name, created_at)"
    " SELECT id, id, now() FROM unnest(%(tenants)s::text[]) AS id"
)
_PARTITIONS = "SELECT platform.ensure_partitions(current_date - %(days)s::int - 1, %(days)s::int + 3)"
# Five events of a lead lie on one day, leads spread over all days.
_OUTBOX = """
INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, key_id, topic, event_type, payload,
                             occurred_at, recorded_at)
SELECT uuidv7(past.ago), past.tenant_id, %(product)s, past.subject_id, past.subject_id, 'events.' || %(product)s,
       %(product)s || '.lead_handled', '{"activity": 1}', now() + past.ago, now() + past.ago
  FROM (SELECT 'past-' || n / 5 AS subject_id,
               (%(tenants)s::text[])[1 + n / 5 %% %(many)s::int] AS tenant_id,
               interval '-1 hour' - (n / 5 %% %(days)s::int) * interval '1 day' AS ago
          FROM generate_series(0, %(count)s::int - 1) AS n) AS past"""
_DECISIONS = """
INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, reason, decided_at)
SELECT event_id, tenant_id, %(group)s, 'dropped', 'not_further', recorded_at FROM platform.outbox"""
_JOURNEYS = """
INSERT INTO platform.journey_progress (tenant_id, product, subject_id, reached, updated_at)
SELECT DISTINCT tenant_id, product, subject_id, ARRAY[event_type], now() FROM platform.outbox"""
# Each lead has one that was superseded and one that is live.
_NUDGES = """
INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, state, due_at, reason,
                            created_at, updated_at)
SELECT overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid, tenant_id, product, subject_id, 'worklog.handle_lead',
       'worklog.lead_handled', uuidv7(), made.state, now() + interval '1 day', made.reason, now(), now()
  FROM platform.journey_progress
 CROSS JOIN (VALUES ('cancelled'::platform.nudge_state, 'superseded'), ('scheduled', NULL)) AS made (state, reason)"""
_STATEMENTS = (_TENANTS, _PARTITIONS, _OUTBOX, _DECISIONS, _JOURNEYS, _NUDGES)
_TABLES = "platform.outbox, platform.decision, platform.journey_progress, platform.nudge"


def fill(conn: psycopg.Connection[Any], product: str, group: str, tenants: Sequence[str], count: int) -> None:
    """Write `count` decided events, as a superuser into an empty database, and tidy up as autovacuum would."""
    parameters = {
        "product": product,
        "group": group,
        "tenants": list(tenants),
        "many": len(tenants),
        "count": count,
        "days": DAYS,
    }
    for statement in _STATEMENTS:
        conn.execute(statement.encode(), parameters)
    conn.execute(f"VACUUM (ANALYZE) {_TABLES}".encode())
    conn.execute("CHECKPOINT")
