"""Is the past complete? One indexed probe, however long the history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.integration.postgres.conftest import Conn

GROUP = "supersession.loans"


def append(conn: Conn, tenant: str, subject: str, product: str = "loans") -> str:
    row = conn.execute(
        "SELECT platform.append(%s, %s, %s, 'x', '{}')::text", [tenant, product, subject]
    ).fetchone()
    assert row is not None
    return str(row[0])


def decide(conn: Conn, tenant: str, event_id: str, group: str = GROUP) -> None:
    conn.execute(
        "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)"
        " VALUES (%s, %s, %s, 'scheduled', now())",
        [event_id, tenant, group],
    )


def undecided(conn: Conn, tenant: str, subject: str = "L-1", product: str = "loans") -> bool:
    row = conn.execute(
        "SELECT platform.undecided(%s, %s, %s, %s)", [GROUP, tenant, product, subject]
    ).fetchone()
    assert row is not None
    return bool(row[0])


def test_undecided_until_every_event_of_the_subject_is_decided(
    domain: Conn, consumer: Conn, tenant: str
) -> None:
    assert not undecided(consumer, tenant)
    events = [append(domain, tenant, "L-1") for _ in range(3)]
    for event in events:
        assert undecided(consumer, tenant)
        decide(consumer, tenant, event)
    assert not undecided(consumer, tenant)


def test_only_this_group_subject_product_and_tenant_count(
    domain: Conn, consumer: Conn, owner: Conn, tenant: str
) -> None:
    event = append(domain, tenant, "L-1")
    decide(consumer, tenant, event, group="rules.loans")
    assert undecided(consumer, tenant), "another group's decision is none"
    decide(consumer, tenant, event)
    append(domain, tenant, "L-2")
    append(domain, tenant, "L-1", product="worklog")
    assert not undecided(consumer, tenant)
    assert undecided(consumer, tenant, product="worklog")
    assert not undecided(consumer, f"{tenant}-x")


def test_the_probe_takes_the_index_of_the_subject(
    domain: Conn, consumer: Conn, owner: Conn, tenant: str
) -> None:
    """EXPLAIN regression: an index serves every step, alone and per row of a set, in a prepared statement's plan.

    Sequential scans are priced out rather than left to chance: on the few pages of a test, whether
    one is cheaper hangs on the moment autovacuum last looked. Priced out, one is left in the plan
    only where no index can serve, which is the fault this test is for.
    """
    for number in range(50):
        append(domain, tenant, f"L-{number}")
    consumer.execute("SET plan_cache_mode TO force_generic_plan")
    consumer.execute("SET enable_seqscan TO off")
    alone = "SELECT * FROM platform.undecided_events($1, $2, $3, $4)"
    per_row = (
        "SELECT n.nudge_id FROM platform.nudge n"
        " WHERE n.tenant_id = $2 AND n.product = $3 AND n.subject_id = $4"
        " AND EXISTS (SELECT FROM platform.undecided_events($1, n.tenant_id, n.product, n.subject_id))"
    )
    for name, query in (("alone", alone), ("per_row", per_row)):
        consumer.execute(f"PREPARE {name} (text, text, text, text) AS {query}".encode())
        explain = f"EXPLAIN (FORMAT JSON) EXECUTE {name} ('g', '{tenant}', 'loans', 'L-1')"
        row = consumer.execute(explain.encode()).fetchone()
        assert row is not None
        nodes = list(walk(row[0][0]["Plan"]))
        assert {node["Node Type"] for node in nodes} & {"Function Scan", "Seq Scan", "Hash", "Sort"} == set()
        on_outbox = [node for node in nodes if node.get("Alias", "").startswith("o")]
        on_decision = [node for node in nodes if node.get("Alias", "").startswith("d")]
        assert 0 < len(on_outbox) < 40, "each day once"
        assert 0 < len(on_decision) < 40, "each day once"
        assert all("message_key = " in node["Index Cond"] for node in on_outbox)
        assert all("event_id = " in node["Index Cond"] for node in on_decision)


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes that touch tables, and what joins or sorts them."""
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)
