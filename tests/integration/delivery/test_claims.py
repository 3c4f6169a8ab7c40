"""What a claim decides, on the real database: what has become untrue is not sent, and each end has its reason."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from consumers.delivery.claim import Claimer
from deploy.providers.faults import Fault
from schemas.products.audience import Channel
from tests.integration.delivery.conftest import Bench


def test_a_due_delivery_is_claimed_called_and_recorded(bench: Bench) -> None:
    delivery = bench.ready()
    bench.worker().through()
    assert bench.row(delivery) == ("sent", None, 1)
    assert bench.nudge_state() == ("sent", None)
    (arrival,) = bench.arrivals()
    assert arrival.delivery == delivery
    assert arrival.key == delivery
    assert "https://loans.example/loans/L-1" in str(arrival.content)
    logged = bench.owner.execute(
        "SELECT attempt, outcome, status, provider_ref FROM platform.delivery_attempt WHERE delivery_id = %s",
        [delivery],
    ).fetchall()
    assert logged == [(1, "accepted", 200, arrival.reference)]


def test_an_announced_delivery_is_claimed_by_its_id(bench: Bench) -> None:
    delivery = bench.ready()
    rounds = bench.worker(calls=False)
    rounds.once((delivery, bench.tenant))
    assert [job.message.delivery_id for job in rounds.kept].count(delivery) == 1


def test_what_is_not_due_waits(bench: Bench) -> None:
    delivery = bench.ready(due_at="tomorrow")
    bench.worker().through()
    assert bench.row(delivery) == ("queued", None, 0)


@pytest.mark.parametrize("state", ["cancelled", "sent and further"])
def test_a_superseded_nudge_is_not_sent(bench: Bench, state: str) -> None:
    delivery = bench.ready()
    if state == "cancelled":
        bench.owner.execute(
            "UPDATE platform.nudge SET state = 'cancelled', reason = 'superseded' WHERE tenant_id = %s",
            [bench.tenant],
        )
    else:
        bench.owner.execute("UPDATE platform.nudge SET state = 'sent' WHERE tenant_id = %s", [bench.tenant])
        bench.owner.execute(
            "UPDATE platform.journey_progress SET reached = reached || '{loans.phone_verified}' WHERE tenant_id = %s",
            [bench.tenant],
        )
    bench.worker().through()
    assert bench.row(delivery) == ("suppressed", "superseded", 0)
    assert bench.arrivals() == []


def test_a_nudge_of_an_earlier_epoch_is_not_sent_although_its_step_was_reached_again(bench: Bench) -> None:
    delivery = bench.ready()
    bench.owner.execute("UPDATE platform.nudge SET state = 'sent' WHERE tenant_id = %s", [bench.tenant])
    bench.owner.execute(
        "UPDATE platform.journey_progress SET epoch_began_at = now() + interval '1 second' WHERE tenant_id = %s",
        [bench.tenant],
    )
    bench.worker().through()
    assert bench.row(delivery) == ("suppressed", "superseded", 0)


def test_a_nudge_already_told_on_one_channel_goes_out_on_the_other(bench: Bench) -> None:
    delivery = bench.ready()
    bench.owner.execute("UPDATE platform.nudge SET state = 'sent' WHERE tenant_id = %s", [bench.tenant])
    bench.worker().through()
    assert bench.row(delivery) == ("sent", None, 1)


def test_nothing_goes_out_while_an_event_of_the_lead_is_undecided(bench: Bench) -> None:
    delivery = bench.ready()
    further = bench.event("phone_verified")
    bench.worker().through()
    assert bench.row(delivery) == ("queued", "past_incomplete", 0)
    assert bench.arrivals() == []
    bench.decide(further)
    bench.owner.execute("UPDATE platform.delivery SET due_at = now() WHERE delivery_id = %s", [delivery])
    bench.worker().through()
    assert bench.row(delivery) == ("sent", None, 1)


def test_a_lifecycle_message_waits_for_nothing(bench: Bench) -> None:
    bench.person("a")
    bench.assign("a")
    event = bench.event("sanctioned", amount="1000.00", currency="EUR")
    delivery = bench.delivery(event, kind="loans.sanctioned")
    bench.worker().through()
    assert bench.row(delivery)[0] == "sent"


@pytest.mark.parametrize(
    ("column", "value", "reason"), [("active", False, "inactive"), ("phone", None, "no_address")]
)
def test_a_person_who_cannot_be_told_any_more_is_not(
    bench: Bench, column: str, value: object, reason: str
) -> None:
    delivery = bench.ready()
    bench.owner.execute(
        f"UPDATE platform.contact SET {column} = %s WHERE tenant_id = %s".encode(), [value, bench.tenant]
    )
    bench.worker().through()
    assert bench.row(delivery) == ("suppressed", reason, 0)
    assert bench.nudge_state() == ("cancelled", "suppressed"), "nothing stays pending"


def test_who_no_longer_holds_the_role_is_not_told(bench: Bench) -> None:
    delivery = bench.ready()
    bench.person("b")
    bench.assign("b")
    bench.worker().through()
    assert bench.row(delivery) == ("suppressed", "no_longer_applicant", 0)


def test_a_nudge_of_which_another_delivery_is_left_stays(bench: Bench) -> None:
    bench.ready()
    row = bench.owner.execute(
        "SELECT nudge_id::text, event_id::text FROM platform.delivery WHERE tenant_id = %s", [bench.tenant]
    ).fetchone()
    assert row is not None
    bench.delivery(row[1], nudge_id=row[0], channel="email")
    bench.owner.execute("UPDATE platform.contact SET phone = NULL WHERE tenant_id = %s", [bench.tenant])
    bench.worker().through()
    assert bench.nudge_state() == ("pending", None)


def test_what_has_expired_is_not_sent(bench: Bench) -> None:
    delivery = bench.ready(expires_at="yesterday")
    bench.worker().through()
    assert bench.row(delivery) == ("expired", "expired", 0)


def test_a_retry_sends_the_frozen_body(bench: Bench) -> None:
    delivery = bench.ready()
    bench.local.faults.tell(Fault(kind="status", status=503, times=1, tenant=bench.tenant))
    rounds = bench.worker()
    rounds.through()
    assert bench.row(delivery) == ("queued", "retry", 1)
    bench.owner.execute(
        "UPDATE platform.contact SET first_name = 'Grace' WHERE tenant_id = %s", [bench.tenant]
    )
    bench.owner.execute("UPDATE platform.delivery SET due_at = now() WHERE delivery_id = %s", [delivery])
    rounds.through()
    assert bench.row(delivery) == ("sent", None, 2)
    (arrival,) = bench.arrivals()
    assert "Ada" in str(arrival.content)
    assert "Grace" not in str(arrival.content)


def test_a_rejected_message_has_failed(bench: Bench) -> None:
    delivery = bench.ready()
    bench.local.faults.tell(Fault(kind="status", status=400, code=131026, times=1, tenant=bench.tenant))
    bench.worker().through()
    assert bench.row(delivery) == ("failed", "rejected", 1)


def test_an_inapp_message_is_there_exactly_once(bench: Bench) -> None:
    bench.person("adv")
    bench.assign("adv", "advisor")
    bench.person("a")
    bench.assign("a")
    event = bench.event()
    delivery = bench.delivery(event, nudge_id=bench.nudge(event), user="adv", role="advisor", channel="inapp")
    rounds = bench.worker(Channel.INAPP)
    rounds.once((delivery, bench.tenant))
    rounds.once((delivery, bench.tenant))
    assert bench.row(delivery) == ("sent", None, 1)
    shown = bench.owner.execute(
        "SELECT user_id, content->>'text' FROM platform.inapp_message WHERE tenant_id = %s", [bench.tenant]
    ).fetchall()
    assert [user for user, _ in shown] == ["adv"]
    assert "Ada" in shown[0][1]


def test_messages_to_one_person_about_one_lead_keep_their_order(bench: Bench) -> None:
    first = bench.ready()
    event = bench.event("sanctioned", amount="1000.00", currency="EUR")
    bench.decide(event)
    second = bench.delivery(event, kind="loans.sanctioned")
    bench.local.faults.tell(Fault(kind="status", status=503, times=1, tenant=bench.tenant))
    rounds = bench.worker()
    rounds.through()
    assert bench.row(first)[0] == "queued"
    assert bench.row(second) == ("queued", "in_order", 0)
    bench.owner.execute("UPDATE platform.delivery SET due_at = now() WHERE delivery_id = %s", [first])
    rounds.through()
    assert bench.row(second) == ("queued", None, 0), "its predecessor's end woke it"
    rounds.through()
    assert bench.row(second)[0] == "sent"
    assert [each.delivery for each in bench.arrivals()] == [first, second]


def test_nobody_supersedes_a_nudge_between_the_check_and_the_send(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a message would go out of which the history says that it was cancelled."""
    delivery = bench.ready()
    refused = []
    render = Claimer._render

    def meanwhile(self: Claimer, *given: Any) -> Any:
        """After what stands was asked, before anything is written of it."""
        with psycopg.connect(bench.stack.consumer_dsn) as other:
            other.execute("SET lock_timeout = '100ms'")
            try:
                other.execute(
                    "UPDATE platform.nudge SET state = 'cancelled', reason = 'superseded'"
                    " WHERE tenant_id = %s AND state IN ('scheduled', 'pending')",
                    [bench.tenant],
                )
            except psycopg.errors.LockNotAvailable as error:
                refused.append(error)
        return render(self, *given)

    monkeypatch.setattr(Claimer, "_render", meanwhile)
    bench.worker().through()
    assert len(refused) == 1
    assert bench.row(delivery) == ("sent", None, 1)
    assert bench.nudge_state() == ("sent", None)
