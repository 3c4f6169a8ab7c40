"""What a quiet tenant waits beside another's backlog of 50,000 messages, over what it waits alone.

From a domain service's commit of an immediate step to the provider that has the request, one step at a time. The
backlog lies in Postgres and is due; its tenant has its share of the account in flight all the while.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Collection
from functools import partial
from typing import Final

import psycopg

from tests.bench.figures import Figure, of_rounds, percentile
from tests.bench.pipeline import Provider, causes, commit, everything, local_provider, people
from tests.bench.rig import Rig, until

NAMES: Final = ("fairness_ratio",)
BACKLOG: Final = 50_000
ROUNDS: Final = 5
STEPS: Final = 100
WARM_UP: Final = 100
APART_S: Final = 0.02
"""Between two steps: each waits for the backlog, and not for the step before."""
LIMITS: Final = "in_flight = 64"
"""With the share that a tenant has unless told otherwise: half."""
ANSWERS_AFTER_S: Final = 0.1
"""What the provider takes for a message of the backlog, as one on the net does: 320 a second at 32 at once, so that the
backlog outlasts a round many times.
"""

_BACKLOG = """
WITH caused AS (
  SELECT platform.append(%(tenant)s, 'loans', 'B-0', 'loans.offer_submitted',
                         '{"applicant_id": "a", "offer_id": "o-1", "amount": 1000000}') AS event_id
), person AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone)
  SELECT %(tenant)s, 'b' || n, 'Ada', '+4915112345678' FROM generate_series(1, %(count)s::int) AS n
), drawn AS (
  SELECT 'b' || n AS user_id, 'B-' || n AS subject_id, overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid AS id,
         now() - interval '1 hour' + n / 500 * interval '1 second' AS due_at
    FROM generate_series(1, %(count)s::int) AS n
), told AS (
  INSERT INTO platform.notification (notification_id, intent_id, tenant_id, kind, event_id, user_id, role, product,
                                     subject_id, locale, zone, created_at)
  SELECT id, id, %(tenant)s, 'loans.offer_received', event_id, user_id, 'user', 'loans', subject_id, 'en', 'UTC', now()
    FROM drawn, caused
)
INSERT INTO platform.delivery (delivery_id, notification_id, tenant_id, kind, event_id, user_id, role, channel, product,
                               subject_id, lane, due_at, created_at, updated_at)
SELECT id, id, %(tenant)s, 'loans.offer_received', event_id, user_id, 'user', 'whatsapp', 'loans', subject_id,
       'events.loans', due_at, now(), now()
  FROM drawn, caused"""

_CANCEL = """
UPDATE platform.delivery SET state = 'suppressed', reason = 'cancelled' WHERE tenant_id = %s AND state = 'queued'"""


def measure(rig: Rig, _wanted: Collection[str]) -> list[Figure]:
    """Rounds of two halves, alone and beside a backlog; each round's ratio is that of its medians."""
    rig.stream()
    ratios: list[float] = []
    with local_provider(rig, LIMITS) as provider, everything(rig, provider, "balanced"):
        _steps(rig, provider, "warm-up", WARM_UP)
        for number in range(1, ROUNDS + 1):
            alone = _steps(rig, provider, f"alone-{number}", STEPS)
            crowd = rig.tenant(f"backlog-{number}")
            provider.tell({"kind": "stall", "tenant": crowd, "seconds": ANSWERS_AFTER_S})
            _lay(rig, crowd)
            until(partial(_flows, provider, crowd), "the backlog flows")
            beside = _steps(rig, provider, f"beside-{number}", STEPS)
            left = _cancel(rig, crowd)
            provider.tell()
            ratios.append(statistics.median(beside) / statistics.median(alone))
            rig.say(
                f"fairness_ratio round {number}: {ratios[-1]:.2f}; p50 {statistics.median(alone):.1f} ms alone,"
                f" {statistics.median(beside):.1f} beside (p99 {percentile(alone, 0.99):.1f},"
                f" {percentile(beside, 0.99):.1f}); {left:,} of {BACKLOG:,} were left"
            )
    note = f"median of {STEPS} steps beside a backlog of {BACKLOG:,} due in Postgres, over the median alone"
    return [of_rounds("fairness_ratio", "backlog", "ratio", ratios, STEPS, note)]


def _flows(provider: Provider, tenant: str) -> bool:
    return provider.count(tenant) > 0


def _steps(rig: Rig, provider: Provider, name: str, count: int) -> list[float]:
    """What each of a fresh tenant's messages waited, in milliseconds."""
    tenant = people(rig, name, count)
    committed: dict[str, float] = {}
    with psycopg.connect(rig.stack.domain_dsn) as conn:
        for number in range(1, count + 1):
            committed[commit(conn, tenant, number)] = time.time()
            time.sleep(APART_S)
    until(lambda: provider.count(tenant) >= count, "every message has arrived")
    received, caused = provider.received(tenant), causes(rig, tenant)
    return [1_000 * (received[caused[event]] - at) for event, at in committed.items()]


def _lay(rig: Rig, tenant: str) -> None:
    """The tenant's backlog, as preparation would have left it."""
    with psycopg.connect(rig.stack.owner_dsn, autocommit=True) as owner:
        owner.execute(_BACKLOG.encode(), {"tenant": tenant, "count": BACKLOG})
    rig.superuser.execute("VACUUM (ANALYZE) platform.delivery, platform.notification, platform.contact")


def _cancel(rig: Rig, tenant: str) -> int:
    """What is left of the backlog is not sent; how much that was."""
    left = rig.superuser.execute(_CANCEL.encode(), [tenant]).rowcount
    assert left > 0, "the backlog ended before the measurement did"
    rig.superuser.execute("VACUUM (ANALYZE) platform.delivery")
    return left
