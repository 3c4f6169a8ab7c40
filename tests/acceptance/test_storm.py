"""The storm of the demo, on the run's stack: what it prints as kept is asserted here."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from connectors.registry import load_catalogue
from deploy.demo.checks import Scope, check, undecided
from deploy.demo.processes import running
from deploy.demo.replay import replay
from deploy.demo.sampler import QUERIES, Sampler
from deploy.demo.storm import MISTYPED, planned, unleash
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from producers import tenants
from producers.products.loans.application import Move
from producers.products.loans.service import PRODUCT, install
from tests.acceptance.waiting import until

LEADS = 20


def another_tenant(stack: Stack) -> str:
    name = f"t-{uuid.uuid4().hex[:16]}"
    with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
        install(owner)
        tenants.create(owner, name, roles=[DOMAIN])
    return name


@pytest.mark.timeout(300)
def test_a_storm_over_two_tenants_keeps_every_promise(pipeline: Stack, tenant: str, tmp_path: Path) -> None:
    """Duplicates, disorder, concurrency, records that come twice, a mistyped event; two processes, one truth."""
    scope = Scope((tenant, another_tenant(pipeline)), PRODUCT)
    with (
        psycopg.connect(pipeline.consumer_dsn, autocommit=True) as conn,
        running(pipeline.settings, [scope.group, scope.group], tmp_path / "tellonce.log") as processes,
        Sampler(pipeline.consumer_dsn, scope.tenants) as sampler,
    ):

        def all_decided() -> bool:
            processes.check()
            return undecided(conn, scope) == 0

        unleash(pipeline.domain_dsn, planned(scope.tenants, LEADS))
        conn.execute(QUERIES["resend_some"], scope.parameters)
        until(all_decided, "every event decided")
        replayed = replay(pipeline.settings, load_catalogue(), PRODUCT, scope.tenants)
    with psycopg.connect(pipeline.consumer_dsn, autocommit=True) as conn:
        checks = check(conn, scope, replayed, sampler)
        replayed.superseded.decisions.pop()
        blind = [each for each in check(conn, scope, replayed, sampler) if each.held]
    assert [each for each in checks if not each.held] == []
    assert len(blind) == len(checks) - 1, "a decision that nobody expected is not noticed"
    assert replayed.records > len(replayed.events) + len(replayed.dead), "no record came twice"


def test_the_storm_has_what_it_promises() -> None:
    """A plan without retries, late facts, bursts, ends and restarts would prove nothing."""
    (storm,) = planned(["acme"], LEADS)
    calls = [*storm.beginnings, *storm.rest]
    times = Counter(call.event_id for call in calls)
    assert max(times.values()) == 2
    assert any(call.late for call in calls)
    assert {Move.WITHDRAW, Move.REAPPLY, Move.SUBMIT_OFFER, Move.SANCTION} <= {call.move for call in calls}
    assert MISTYPED not in {move.value for move in Move}
    occurred: dict[str, list[float]] = {}
    for call in calls:
        occurred.setdefault(call.lead, []).append(call.occurred_at.timestamp())
    assert any(moments != sorted(moments) for moments in occurred.values())


def test_a_plan_is_the_same_for_a_seed_and_another_for_another() -> None:
    first, again, other = (planned(["acme"], LEADS, seed)[0] for seed in (1, 1, 2))
    assert [(c.lead, c.move, c.late) for c in first.rest] == [(c.lead, c.move, c.late) for c in again.rest]
    assert [(c.lead, c.move) for c in first.rest] != [(c.lead, c.move) for c in other.rest]
