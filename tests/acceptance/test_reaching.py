"""From a domain service's commit to the person; and what reaches nobody while a tenant is suspended or held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from connectors.debezium.client import ConnectClient, ConnectorStatus
from connectors.debezium.config import NAME
from producers import tenants
from producers.directory import Contact
from tests.acceptance.house import (
    ADVISOR,
    APPLICANT,
    DECIDING,
    DELIVERING,
    SOON,
    House,
    Lead,
    ago,
    start,
    stays,
)
from tests.acceptance.waiting import until


@pytest.fixture(scope="module")
def everything(house: House) -> Iterator[None]:
    """Every process, for the tests that stop none."""
    with house.running(*DECIDING, *DELIVERING, "clock"):
        yield


PAST = timedelta(seconds=-1)
TOLD = [("email", "ben@house.example"), ("inapp", "ben"), ("whatsapp", "+4915112345678")]
"""The applicant and the advisor, each on their channels."""


@pytest.mark.usefixtures("everything")
def test_the_article_s_two_timers_make_one_message_when_the_second_is_due(lead: Lead) -> None:
    """initiated at 10:00, credit_check_done at 10:04: one message, at 10:19, to applicant and advisor."""
    done = ago(timedelta(minutes=15))
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=APPLICANT, occurred_at=done - timedelta(minutes=4)
    )
    lead.service.assign_advisor("L-1", advisor_id="ben", contact=ADVISOR)
    lead.service.complete_credit_check("L-1", credit_score=700, occurred_at=done)
    until(lambda: lead.told("explore_savings") == TOLD, "both are told")
    until(lambda: all(state == "sent" for _, state, _ in lead.deliveries()), "all answers are recorded")
    stays(lambda: lead.told("finish_application") == [], "the first nudge is never sent")
    assert lead.nudges() == [
        ("finish_application", "cancelled", "superseded"),
        ("explore_savings", "sent", None),
    ]
    assert lead.told("explore_savings") == TOLD, "once"
    due = (done + timedelta(minutes=15)).timestamp()
    assert all(each.received_at >= due for each in lead.arrivals() if each.channel == "email"), "not before"


@pytest.mark.usefixtures("everything")
def test_an_immediate_step_tears_down_and_sends_at_once_and_is_not_superseded(lead: Lead) -> None:
    start(lead)
    lead.service.view_offers("L-1", offers=2, occurred_at=ago(timedelta(days=1)))
    lead.service.submit_offer("L-1", offer_id="o-1", amount=1_000_000)
    lead.service.withdraw("L-1")
    until(
        lambda: lead.told("offer_received") == TOLD,
        "the confirmation arrives, although the journey has ended",
    )
    until(lambda: lead.decided() == 5, "everything is decided")
    time.sleep(SOON.total_seconds())
    stays(lambda: lead.told("choose_offer") == lead.told("finish_application") == [], "the timers are gone")
    assert {(kind, state) for kind, state, _ in lead.nudges()} == {
        ("finish_application", "cancelled"),
        ("choose_offer", "cancelled"),
    }


@pytest.mark.usefixtures("everything")
def test_lifecycle_messages_go_whatever_the_timers_do(lead: Lead) -> None:
    start(lead, due_in=timedelta(hours=1))
    whom = [("inapp", "ada"), ("whatsapp", "+4915112345678")]
    until(lambda: lead.told("advisor_assigned") == whom, "the news arrives")
    assert lead.nudges() == [("finish_application", "scheduled", None)], "and cancels nothing"


@pytest.mark.usefixtures("everything")
def test_a_nudge_that_nobody_can_receive_is_cancelled_with_its_reason(lead: Lead) -> None:
    nobody = Contact(first_name="Ada", active=False)
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=nobody, occurred_at=ago(timedelta(minutes=30), PAST)
    )
    until(lambda: lead.nudges() == [("finish_application", "cancelled", "nobody")], "it ends")
    assert lead.deliveries() == []


@pytest.mark.usefixtures("everything")
def test_without_an_advisor_the_applicant_s_part_still_goes(lead: Lead) -> None:
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=APPLICANT, occurred_at=ago(timedelta(minutes=30), PAST)
    )
    until(lambda: lead.told("finish_application") == [("whatsapp", "+4915112345678")], "she is told")


_READER = """
SELECT s.active_pid, a.backend_start FROM pg_replication_slots AS s JOIN pg_stat_activity AS a ON a.pid = s.active_pid
 WHERE s.slot_name = %s"""


def reader(house: House) -> tuple[tuple[object, ...], ConnectorStatus]:
    """Who reads the WAL, since when, and where the connector's task runs: a restart would change it."""
    with (
        psycopg.connect(house.stack.admin_dsn) as admin,
        ConnectClient(house.stack.connect_url) as connect,
    ):
        found = admin.execute(_READER, [NAME]).fetchone()
        assert found is not None
        return found, connect.status(NAME)


@pytest.mark.usefixtures("everything")
def test_a_suspended_tenant_s_journeys_move_on_and_what_has_become_stale_is_never_sent(
    house: House, lead: Lead, neighbour: Lead
) -> None:
    before = reader(house)
    tenants.suspend(lead.owner, lead.tenant)
    start(lead, due_in=PAST)
    until(lambda: lead.decided() == 2, "its events are decided all the same")
    start(neighbour, due_in=PAST)
    until(lambda: neighbour.told("finish_application") == TOLD, "it falls due: who is not suspended is told")
    assert lead.nudges() == [("finish_application", "scheduled", None)]
    lead.service.complete_credit_check("L-1", credit_score=700, occurred_at=ago(timedelta(minutes=15), PAST))
    until(lambda: lead.decided() == 3, "its journey moves on")
    assert lead.nudges() == [
        ("finish_application", "cancelled", "superseded"),
        ("explore_savings", "scheduled", None),
    ]
    neighbour.service.complete_credit_check(
        "L-1", credit_score=700, occurred_at=ago(timedelta(minutes=15), PAST)
    )
    until(lambda: neighbour.told("explore_savings") == TOLD, "so does the next one")
    assert lead.nudges()[1] == ("explore_savings", "scheduled", None), "nothing fires"

    tenants.resume(lead.owner, lead.tenant)
    until(lambda: lead.told("explore_savings") == TOLD, "what is still true goes out")
    stays(lambda: lead.told("finish_application") == [], "what is not, never")
    assert reader(house) == before, "the connector is the same, and so is its task"


@pytest.mark.usefixtures("everything")
def test_a_held_tenant_s_clock_stands_while_its_events_stream(
    house: House, lead: Lead, neighbour: Lead
) -> None:
    before = reader(house)
    held_at = tenants.hold(lead.owner, lead.tenant)
    start(lead, due_in=timedelta(seconds=1))
    start(neighbour, due_in=timedelta(seconds=1))
    until(lambda: lead.decided() == 2, "its events are decided")
    until(lambda: neighbour.told("finish_application") == TOLD, "the same time has come for others")
    shown = lead.owner.execute("SELECT platform.clock_now(%s)", [lead.tenant]).fetchone()
    assert shown == (held_at,)
    assert lead.nudges() == [("finish_application", "scheduled", None)]

    tenants.release(lead.owner, lead.tenant)
    until(lambda: lead.told("finish_application") == TOLD, "what lay between falls due")
    assert reader(house) == before, "the connector is the same, and so is its task"
