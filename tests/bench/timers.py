"""How fast one clock fires a backlog of due nudges, with the connector streaming what it tells."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

from tests.bench.children import running
from tests.bench.figures import Figure, of_rounds
from tests.bench.rig import WITHIN_S, Rig, until

NAMES: Final = ("timers_rate",)
NUDGES: Final = 100_000
TENANTS: Final = 10
ROUNDS: Final = 5
PRODUCT: Final = "worklog"
TOPIC: Final = f"timers.{PRODUCT}"
LOOK_EVERY_S: Final = 0.05

# Two decided events of each lead, for the completeness probe to look at.
_PAST = """
WITH happened AS (
  INSERT INTO platform.outbox (tenant_id, product, subject_id, key_id, topic, event_type, payload,
                               occurred_at, recorded_at)
  SELECT (%(tenants)s::text[])[1 + n %% %(many)s::int], %(product)s, 'due-' || n, 'due-' || n, 'events.' || %(product)s,
         %(product)s || '.lead_handled', '{"activity": 1}', now(), now() - interval '1 second'
    FROM generate_series(1, %(nudges)s::int) AS n, generate_series(1, 2)
  RETURNING event_id, tenant_id
)
INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)
SELECT event_id, tenant_id, 'supersession.' || %(product)s, 'scheduled', now() FROM happened"""
_ARM = """
INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, due_at,
                            created_at, updated_at)
SELECT overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid, tenant_id, product, subject_id, 'worklog.handle_lead',
       event_type, event_id, now() - random() * interval '1 day', now(), now()
  FROM (SELECT DISTINCT ON (subject_id) * FROM platform.outbox
         WHERE topic = 'events.' || %(product)s AND tenant_id = ANY(%(tenants)s)
         ORDER BY subject_id, event_id) AS cause"""
_LET = "UPDATE platform.tenant SET state = %(state)s WHERE tenant_id = ANY(%(tenants)s)"
_ANY_LEFT = """
SELECT EXISTS (SELECT FROM platform.nudge WHERE tenant_id = %s AND state = 'scheduled' AND retry_at IS NULL)"""


def measure(rig: Rig, _wanted: Collection[str]) -> list[Figure]:
    """A warm-up and five rounds: from the commit that resumes the tenants to the last nudge that is pending."""
    rig.stream()
    tenants = [rig.tenant(f"timers-{number}") for number in range(TENANTS)]
    values = {"tenants": tenants, "many": TENANTS, "product": PRODUCT, "nudges": NUDGES}
    rig.say(f"timers_rate: {2 * NUDGES:,} decided events of {NUDGES:,} leads")
    rig.superuser.execute(_PAST.encode(), values)
    rig.superuser.execute("VACUUM (ANALYZE) platform.outbox, platform.decision")
    with running("tests.bench.clock", [], rig.settings(), rig.log("clock")) as clock:
        rates = []
        for number in range(ROUNDS + 1):
            _arm(rig, values)
            before = rig.in_topic(TOPIC)
            took = _fire(rig, tenants)
            clock.check()
            rates.append(NUDGES / took)
            rig.say(f"timers_rate {f'round {number}' if number else 'warm-up'}: {rates[-1]:,.0f} nudges/s")
            _wait_for_capture(rig, before + NUDGES)
    note = f"{TENANTS} tenants, {NUDGES:,} due; two decided events each; the connector streams meanwhile"
    return [of_rounds("timers_rate", PRODUCT, "nudges/s", rates[1:], NUDGES, note)]


def _arm(rig: Rig, values: dict[str, object]) -> None:
    """Everything is due, and of tenants that are suspended."""
    rig.superuser.execute(_LET.encode(), values | {"state": "suspended"})
    rig.superuser.execute("TRUNCATE platform.nudge")
    rig.superuser.execute(_ARM.encode(), values)
    rig.superuser.execute("VACUUM (ANALYZE) platform.nudge")
    rig.superuser.execute("CHECKPOINT")


def _fire(rig: Rig, tenants: list[str]) -> float:
    began = time.perf_counter()
    rig.superuser.execute(_LET.encode(), {"state": "active", "tenants": tenants})
    left = list(tenants)
    while left:
        if not _any_left(rig, left[-1]):
            left.pop()
            continue
        if time.perf_counter() - began > WITHIN_S:
            raise TimeoutError(f"nudges of {left} are still scheduled")
        time.sleep(LOOK_EVERY_S)
    return time.perf_counter() - began


def _wait_for_capture(rig: Rig, records: int) -> None:
    until(lambda: rig.in_topic(TOPIC) >= records, "all of it is in Kafka")


def _any_left(rig: Rig, tenant: str) -> bool:
    row = rig.superuser.execute(_ANY_LEFT.encode(), [tenant]).fetchone()
    return bool(row and row[0])
