"""The storm of the demo, on the run's stack: what it prints as kept is asserted here."""

from __future__ import annotations

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import psycopg
import pytest

from connectors.registry import load_catalogue
from deploy.demo import checks, messages, reached
from deploy.demo.checks import undecided, unsent
from deploy.demo.outside import outside
from deploy.demo.people import ADVISORS, advisor_of, contact_of, enrol
from deploy.demo.processes import running
from deploy.demo.replay import replay
from deploy.demo.sampler import QUERIES, Sampler
from deploy.demo.scope import Scope
from deploy.demo.storm import MISTYPED, leads_of, planned, unleash
from deploy.demo.time import Time
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
    """Duplicates, disorder, concurrency, records that come twice, a mistyped event, a provider that is away for a
    while; every process, supersession twice; one truth. And none of the checks is blind.
    """
    scope = Scope((tenant, another_tenant(pipeline)), PRODUCT)
    enrol(pipeline.domain_dsn, scope.tenants, leads_of(LEADS))
    with (
        psycopg.connect(pipeline.consumer_dsn, autocommit=True) as conn,
        psycopg.connect(pipeline.owner_dsn, autocommit=True) as owner,
        outside(tmp_path) as providers,
    ):
        time = Time(owner)
        with (
            running(
                pipeline.settings,
                [scope.group, *scope.groups, "clock"],
                tmp_path / "tellonce.log",
                providers.accounts,
            ) as processes,
            Sampler(pipeline.consumer_dsn, scope.tenants) as sampler,
            ThreadPoolExecutor(1) as beside,
        ):
            over = Event()
            outage = beside.submit(providers.outage, over)
            try:
                unleash(pipeline.domain_dsn, planned(scope.tenants, LEADS))
                conn.execute(QUERIES["resend_some"], scope.parameters)
            finally:
                over.set()

            def all_settled() -> bool:
                processes.check()
                return outage.done() and undecided(conn, scope) == 0 and unsent(conn, scope) == 0

            until(all_settled, "every record decided, every delivery ended")
        replayed = replay(pipeline.settings, load_catalogue(), PRODUCT, scope.tenants)
        said = messages.gather(conn, scope, providers)
        decisions = checks.check(conn, scope, replayed, sampler)
        reached_all = reached.check(conn, scope, replayed, said, time)

        def not_held(tampered: messages.Messages) -> list[str]:
            found = reached.check(conn, scope, replayed, tampered, time)
            return [each.promise for each in found if not each.held]

        twice = not_held(replace(said, arrivals=[*said.arrivals, said.arrivals[0]]))
        missing = not_held(replace(said, arrivals=said.arrivals[1:]))
        superseded = not_held(
            replace(said, deliveries=[each._replace(nudge_state="cancelled") for each in said.deliveries])
        )
        unheard = not_held(replace(said, deliveries=said.deliveries[1:], arrivals=[]))
        replayed.superseded.decisions.pop()
        blind = [each for each in checks.check(conn, scope, replayed, sampler) if each.held]
    assert [each for each in (*decisions, *reached_all) if not each.held] == []
    assert len(blind) == len(decisions) - 1, "a decision that nobody expected is not noticed"
    assert twice == ["one visible effect per key"]
    assert missing == ["every delivery was accepted, or ended with a reason"]
    assert superseded == ["nobody got a stale message"]
    assert "every delivery was accepted, or ended with a reason" in unheard
    assert outage.result().failed > 0, "the provider was never away"
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


def test_the_people_are_of_every_kind() -> None:
    """Reached and not, active and not, advised and not; several of them share an advisor."""
    leads = leads_of(LEADS)
    assert {contact_of(lead).phone is None for lead in leads} == {True, False}
    assert {contact_of(lead).active for lead in leads} == {True, False}
    assert {contact_of(lead).locale for lead in leads} == {"en", "de"}
    assert len({advisor_of(lead) for lead in leads}) == ADVISORS + 1
    assert all(advisor_of(lead) != advisor_of(lead, next_one=True) for lead in leads)
