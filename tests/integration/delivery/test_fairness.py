"""Nobody waits for somebody else's backlog or provider: shares, turns, breakers."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

from deploy.providers.faults import Fault
from producers import tenants
from tests.integration.delivery.conftest import Bench


@pytest.fixture
def other(bench: Bench) -> Iterator[Bench]:
    """A second tenant, on the same providers."""
    name = f"t-{uuid.uuid4().hex[:16]}"
    tenants.create(bench.owner, name, roles=["loans_service"])
    found = Bench(bench.stack, bench.owner, name, bench.local, bench.accounts)
    yield found
    bench.owner.execute(
        "UPDATE platform.delivery SET state = 'suppressed', reason = 'cancelled'"
        " WHERE tenant_id = %s AND state IN ('queued', 'sending', 'held')",
        [name],
    )


def backlog(bench: Bench, count: int) -> None:
    """So many lifecycle messages, to a person each."""
    event = bench.event("sanctioned", amount="1000.00", currency="EUR")
    for number in range(count):
        bench.person(f"u{number}")
        bench.delivery(event, user=f"u{number}", role="payload.applicant_id", kind="loans.sanctioned")


def test_a_tenant_s_backlog_leaves_room_for_the_others(bench: Bench, other: Bench) -> None:
    backlog(bench, 50)
    late = other.ready()
    rounds = bench.worker(calls=False)
    rounds.once()
    claimed = Counter(job.message.tenant_id for job in rounds.kept)
    assert claimed[bench.tenant] == 32, "half of the account's 64"
    assert claimed[other.tenant] == 1
    assert other.row(late)[0] == "sending"


def test_what_exceeds_a_share_waits_in_postgres_and_goes_next(bench: Bench) -> None:
    backlog(bench, 50)
    rounds = bench.worker()
    rounds.through()
    sent = len(bench.arrivals())
    assert sent == 32
    rounds.through()
    assert len(bench.arrivals()) == 50


def test_two_workers_never_claim_the_same(bench: Bench) -> None:
    backlog(bench, 40)
    first, second = bench.worker(calls=False), bench.worker(calls=False)
    first.once()
    second.once()
    claimed = [job.message.delivery_id for job in [*first.kept, *second.kept]]
    assert len(claimed) == len(set(claimed)) == 40


def test_a_provider_that_is_down_is_left_alone(bench: Bench) -> None:
    backlog(bench, 50)
    bench.local.faults.tell(Fault(kind="status", status=503, tenant=bench.tenant))
    rounds = bench.worker()
    rounds.through()
    assert rounds.desks.opens_in > 0
    attempts = bench.owner.execute(
        "SELECT count(*) FROM platform.delivery_attempt WHERE tenant_id = %s", [bench.tenant]
    ).fetchone()
    rounds.through()
    assert (
        bench.owner.execute(
            "SELECT count(*) FROM platform.delivery_attempt WHERE tenant_id = %s", [bench.tenant]
        ).fetchone()
        == attempts
    ), "parked"


def test_a_worker_that_rolls_back_gives_its_seats_back(bench: Bench) -> None:
    bench.ready()
    rounds = bench.worker(calls=False)
    bench.owner.execute(
        "CREATE OR REPLACE FUNCTION platform.fails() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION USING ERRCODE = ''40001''; END'"
    )
    bench.owner.execute(
        "CREATE TRIGGER fails BEFORE UPDATE ON platform.delivery FOR EACH ROW EXECUTE FUNCTION platform.fails()"
    )
    try:
        assert rounds.once() == 0
    finally:
        bench.owner.execute("DROP TRIGGER fails ON platform.delivery")
        bench.owner.execute("DROP FUNCTION platform.fails()")
    assert rounds.desks.busy == 0
    assert rounds.kept == []
    rounds.once()
    assert len(rounds.kept) == 1
