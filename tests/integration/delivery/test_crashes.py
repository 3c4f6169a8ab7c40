"""Death and delay at every step of claim → call → record: one visible effect per key, and nothing is overwritten."""

from __future__ import annotations

import time

import psycopg

from connectors.providers.model import Answer, Outcome
from consumers.delivery.sender import Answered
from deploy.providers.faults import Fault
from tests.integration.delivery.conftest import Bench


def expire_lease(bench: Bench, delivery: str) -> None:
    bench.owner.execute(
        "UPDATE platform.delivery SET lease_until = now() - interval '1 second' WHERE delivery_id = %s",
        [delivery],
    )


def test_dead_before_the_call_another_worker_sends_it(bench: Bench) -> None:
    delivery = bench.ready()
    dead = bench.worker(calls=False)
    dead.once()
    assert bench.row(delivery) == ("sending", None, 1)
    other = bench.worker()
    other.through()
    assert bench.row(delivery) == ("sending", None, 1), "its lease holds"
    expire_lease(bench, delivery)
    other.through()
    assert bench.row(delivery) == ("sent", None, 2)
    assert len(bench.arrivals()) == 1


def test_dead_after_the_call_the_second_has_no_second_effect(bench: Bench) -> None:
    delivery = bench.ready()
    dead = bench.worker()
    dead.once()
    deadline = time.monotonic() + 10
    while not dead.mailbox.answered:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    expire_lease(bench, delivery)
    bench.worker().through()
    assert bench.row(delivery) == ("sent", None, 2)
    (arrival,) = bench.arrivals()
    assert arrival.repeats == 1, "the provider knew the key"


def test_a_late_worker_overwrites_nothing(bench: Bench) -> None:
    delivery = bench.ready()
    late = bench.worker(calls=False)
    late.once()
    (job,) = (job for job in late.kept if job.message.delivery_id == delivery)
    expire_lease(bench, delivery)
    bench.worker().through()
    sent = bench.owner.execute(
        "SELECT * FROM platform.delivery WHERE delivery_id = %s", [delivery]
    ).fetchone()
    for outcome in (Outcome.REJECTED, Outcome.RETRY, Outcome.UNKNOWN):
        late.mailbox.answer(Answered(job, Answer(outcome), time.time(), time.time()))
    late.worker.round(claiming=False)
    assert (
        bench.owner.execute("SELECT * FROM platform.delivery WHERE delivery_id = %s", [delivery]).fetchone()
        == sent
    )


def test_accepted_wins_however_late(bench: Bench) -> None:
    delivery = bench.ready()
    late = bench.worker(calls=False)
    late.once()
    (job,) = (job for job in late.kept if job.message.delivery_id == delivery)
    expire_lease(bench, delivery)
    bench.local.faults.tell(Fault(kind="status", status=503, times=1, tenant=bench.tenant))
    bench.worker().through()
    assert bench.row(delivery) == ("queued", "retry", 2)
    late.mailbox.answer(Answered(job, Answer(Outcome.ACCEPTED, 200, "wamid.late"), time.time(), time.time()))
    late.worker.round(claiming=False)
    assert bench.row(delivery) == ("sent", None, 2)


def test_a_call_does_not_begin_on_an_old_lease(bench: Bench) -> None:
    delivery = bench.ready()
    rounds = bench.worker(calls=False)
    rounds.once()
    (job,) = (job for job in rounds.kept if job.message.delivery_id == delivery)
    stale = job._replace(begin_before=time.monotonic() - 1)
    other = bench.worker()
    other.worker._submit([stale])
    deadline = time.monotonic() + 10
    while not other.mailbox.answered:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    (answered,) = other.mailbox.answered
    assert answered.answer is None
    rounds.mailbox.answer(answered)
    rounds.worker.round(claiming=False)
    assert bench.row(delivery) == ("queued", "retry", 1)
    assert bench.arrivals() == []


def test_cut_after_it_was_accepted_a_provider_that_knows_keys_acts_once(bench: Bench) -> None:
    delivery = bench.ready()
    bench.local.faults.tell(Fault(kind="cut", accepted=True, times=1, tenant=bench.tenant))
    rounds = bench.worker()
    rounds.through()
    assert bench.row(delivery) == ("queued", "retry", 1)
    bench.owner.execute("UPDATE platform.delivery SET due_at = now() WHERE delivery_id = %s", [delivery])
    rounds.through()
    assert bench.row(delivery) == ("sent", None, 2)
    assert len(bench.arrivals()) == 1


def test_a_database_that_is_away_loses_no_answer(bench: Bench) -> None:
    delivery = bench.ready()
    rounds = bench.worker()
    rounds.once()
    with psycopg.connect(bench.stack.admin_dsn, autocommit=True) as superuser:
        superuser.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test delivery'"
        )
    deadline = time.monotonic() + 10
    while bench.row(delivery)[0] != "sent":
        assert time.monotonic() < deadline
        rounds.worker.round(claiming=False)
        time.sleep(0.01)
    assert rounds.desks.busy == 0
    assert len(bench.arrivals()) == 1
