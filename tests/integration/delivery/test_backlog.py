"""A tenant with fifty thousand messages behind it, a dead provider, a slow one, a poison record: others go on.

Held by the order of claims and the number of seats, never by how long something took.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.postgres import clock
from consumers.delivery.resolve import QUERIES
from producers import tenants
from tests.integration.delivery.conftest import Bench, Rounds
from tests.integration.delivery.test_poison import lifecycle, nul, sabotage, settle

BACKLOG = 50_000
SHARE = 32
"""Half of the account's 64: what one tenant may have in flight."""
_BACKLOG = """
WITH person AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone, locale, zone)
  SELECT %(tenant)s, 'u' || n, 'Ada', '+4915112345678', 'en', 'UTC' FROM generate_series(1, %(count)s::int) AS n
), drawn AS (
  SELECT 'u' || n AS user_id, 'B-' || n AS subject_id, overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid AS id,
         now() - interval '1 hour' AS due_at
    FROM generate_series(1, %(count)s::int) AS n
), told AS (
  INSERT INTO platform.notification (notification_id, intent_id, tenant_id, kind, event_id, user_id, role, product,
                                     subject_id, locale, zone, created_at)
  SELECT id, id, %(tenant)s, 'loans.sanctioned', %(event)s, user_id, 'payload.applicant_id', 'loans', subject_id, 'en',
         'UTC', now() FROM drawn
)
INSERT INTO platform.delivery (delivery_id, notification_id, tenant_id, kind, event_id, user_id, role, channel, product,
                               subject_id, lane, due_at, created_at, updated_at)
SELECT id, id, %(tenant)s, 'loans.sanctioned', %(event)s, user_id, 'payload.applicant_id', 'whatsapp', 'loans',
       subject_id, 'events.loans', due_at, now(), now() FROM drawn"""


@pytest.fixture
def quiet(bench: Bench) -> Iterator[Bench]:
    """A second tenant, on the same providers, with one person to write to."""
    name = f"t-{uuid.uuid4().hex[:16]}"
    tenants.create(bench.owner, name, roles=["loans_service"])
    found = Bench(bench.stack, bench.owner, name, bench.local, bench.accounts)
    with found.exits:
        yield found
    forget(found)


def forget(bench: Bench) -> None:
    """What is left of the tenant's messages is nobody's to send."""
    for table in ("delivery", "notification", "contact"):
        bench.owner.execute(f"DELETE FROM platform.{table} WHERE tenant_id = %s".encode(), [bench.tenant])


def news(bench: Bench, user: str) -> str:
    """A message to somebody of their own, which waits for nothing."""
    bench.person(user)
    return lifecycle(bench, "loans.sanctioned", user=user, role="payload.applicant_id")


def backlog(bench: Bench, count: int) -> None:
    """So many messages, due for an hour, all since the same moment, to a person each."""
    event = bench.event("sanctioned", amount="1000.00", currency="EUR")
    bench.decide(event)
    bench.owner.execute(_BACKLOG.encode(), {"tenant": bench.tenant, "event": event, "count": count})


def claimed(rounds: Rounds) -> Counter[str]:
    """Jobs by tenant, so far."""
    return Counter(job.message.tenant_id for job in rounds.kept)


def test_whatever_a_tenant_s_backlog_another_s_message_is_claimed_in_the_next_round(
    bench: Bench, quiet: Bench
) -> None:
    backlog(bench, BACKLOG)
    try:
        news(quiet, "a0")
        first_asked = {
            tenant for _, tenant, _ in bench.owner.execute(QUERIES["due"], asked(bench)).fetchmany(2)
        }
        assert first_asked == {bench.tenant, quiet.tenant}, "tenants take turns from the first on"
        rounds = bench.worker(calls=False)
        rounds.once()
        assert claimed(rounds) == {bench.tenant: SHARE, quiet.tenant: 1}
        for number in range(1, 10):
            later = news(quiet, f"a{number}")
            rounds.once()
            assert rounds.kept[-1].message.delivery_id == later
            assert claimed(rounds) == {bench.tenant: SHARE, quiet.tenant: number + 1}
        assert rows_read(bench) < 2_000, "a backlog is not read to find what comes next"
    finally:
        forget(bench)


def asked(bench: Bench) -> dict[str, object]:
    """What a worker with a share of seats free asks for."""
    reading, real = clock.read_at(bench.owner)
    return {
        "channel": "whatsapp",
        "now": reading.now(real),
        "real": real,
        "most": SHARE,
        "per_tenant": SHARE,
        "full": "{}",
    }


def rows_read(bench: Bench) -> float:
    """How many deliveries the question for what is due looks at."""
    row = bench.owner.execute(b"EXPLAIN (ANALYZE, FORMAT JSON) " + QUERIES["due"], asked(bench)).fetchone()
    assert row is not None
    reads: list[float] = [
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in _nodes(row[0][0]["Plan"])
        if node.get("Relation Name") == "delivery"
    ]
    return sum(reads)


def test_a_slow_provider_s_calls_take_no_more_than_the_share_of_whoever_makes_them(
    bench: Bench, quiet: Bench
) -> None:
    """Calls that do not come back: the seats beside them stay the others'."""
    backlog(bench, 3 * SHARE)
    rounds = bench.worker(calls=False)
    for _ in range(3):
        rounds.once()
    assert claimed(rounds) == {bench.tenant: SHARE}
    backlog(quiet, SHARE)
    rounds.once()
    assert claimed(rounds) == {bench.tenant: SHARE, quiet.tenant: SHARE}, "no turn is given in vain"


def test_a_dead_provider_parks_its_own_account_alone(bench: Bench, quiet: Bench, tmp_path: Path) -> None:
    accounts = tmp_path / "accounts.toml"
    accounts.write_text(
        bench.local.accounts_toml()
        + f"""
[whatsapp-dead]
channel = "whatsapp"
tenants = ["{bench.tenant}"]
base_url = "http://127.0.0.1:1"
phone_number_id = "1"
token = "nobody-asks"
in_flight = 64
allow_loopback = true
"""
    )
    bench.accounts = accounts
    backlog(bench, 3 * SHARE)
    rounds = bench.worker()
    rounds.through()
    assert rounds.desks.opens_in > 0, "nobody answered: it is left alone"
    for number in range(3):
        message = news(quiet, f"a{number}")
        rounds.through()
        assert quiet.row(message) == ("sent", None, 1)
    assert len(quiet.arrivals()) == 3
    assert bench.arrivals() == []


def test_a_record_that_cannot_be_sent_holds_up_nobody_else(bench: Bench, quiet: Bench) -> None:
    bench.person("a")
    bench.assign("a")
    bad = lifecycle(bench)
    messages = [news(quiet, f"a{number}") for number in range(3)]
    rounds = bench.worker()
    sabotage(rounds, nul)
    settle(bench, rounds, bad, *messages)
    assert bench.row(bad)[:2] == ("held", "poison")
    assert [quiet.row(each) for each in messages] == [("sent", None, 1)] * 3


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
