"""What an operator retries or cancels, on the way to the provider."""

from __future__ import annotations

import threading

import psycopg
import pytest

from consumers.delivery import operate
from consumers.delivery.operate import DeliveryRefused
from tests.integration.delivery.conftest import Bench


def hold(bench: Bench, delivery_id: str) -> None:
    """As a worker leaves what it does not know the outcome of."""
    for state, reason in (("sending", None), ("held", "unknown_outcome")):
        bench.owner.execute(
            "UPDATE platform.delivery SET state = %s::platform.delivery_state, reason = %s, attempts = 1,"
            " first_attempt_at = now(), lease_until = now(), attempt_token = uuidv7() WHERE delivery_id = %s",
            [state, reason, delivery_id],
        )


def test_what_is_retried_goes_out(bench: Bench) -> None:
    delivery = bench.ready()
    hold(bench, delivery)
    worker = bench.worker()
    worker.through()
    assert bench.arrivals() == [], "on hold, nobody sends it"

    assert operate.retry(bench.owner, [delivery]) == 1
    worker.through()

    assert bench.row(delivery) == ("sent", None, 2)
    assert [each.delivery for each in bench.arrivals()] == [delivery]


def test_what_has_become_untrue_is_not_sent_by_retrying_it(bench: Bench) -> None:
    delivery = bench.ready()
    hold(bench, delivery)
    bench.owner.execute(
        "UPDATE platform.nudge SET state = 'cancelled', reason = 'superseded' WHERE tenant_id = %s",
        [bench.tenant],
    )

    operate.retry(bench.owner, [delivery])
    bench.worker().through()

    assert bench.row(delivery) == ("suppressed", "superseded", 1)
    assert bench.arrivals() == []


def test_what_is_cancelled_does_not_go_out_and_its_nudge_ends(bench: Bench) -> None:
    delivery = bench.ready()

    assert operate.cancel(bench.owner, [delivery]) == 1
    bench.worker().through()

    assert bench.row(delivery) == ("suppressed", "cancelled", 0)
    assert bench.nudge_state() == ("cancelled", "suppressed")
    assert bench.arrivals() == []


def test_what_a_worker_claims_meanwhile_is_not_cancelled(bench: Bench) -> None:
    delivery = bench.ready()
    told: list[BaseException] = []

    def cancel() -> None:
        with psycopg.connect(bench.stack.owner_dsn, autocommit=True) as other:
            try:
                operate.cancel(other, [delivery])
            except DeliveryRefused as refused:
                told.append(refused)

    operator = threading.Thread(target=cancel)
    with bench.owner.transaction():
        bench.owner.execute(
            "UPDATE platform.delivery SET state = 'sending', lease_until = now() + interval '1 minute',"
            " attempt_token = uuidv7() WHERE delivery_id = %s",
            [delivery],
        )
        operator.start()
        while not bench.owner.execute(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%platform.delivery%'"
        ).fetchone():
            assert operator.is_alive(), "it waits for whoever has the delivery"
            bench.owner.execute("SELECT pg_stat_clear_snapshot()")
    operator.join(30)

    assert "is being sent" in str(told[0])
    assert bench.row(delivery)[0] == "sending"


def test_one_that_is_refused_stops_the_others(bench: Bench) -> None:
    delivery = bench.ready()

    with pytest.raises(DeliveryRefused, match="there is no delivery 0198f3a2") as refused:
        operate.cancel(bench.owner, ["0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f", delivery])

    assert str(refused.value).endswith("nothing was changed")
    assert bench.row(delivery) == ("queued", None, 0)
