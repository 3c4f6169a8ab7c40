"""From a domain service's commit to the person."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

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
        "L-1", applicant_id="ada", contact=nobody, occurred_at=ago(timedelta(minutes=30))
    )
    until(lambda: lead.nudges() == [("finish_application", "cancelled", "nobody")], "it ends")
    assert lead.deliveries() == []


@pytest.mark.usefixtures("everything")
def test_without_an_advisor_the_applicant_s_part_still_goes(lead: Lead) -> None:
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=APPLICANT, occurred_at=ago(timedelta(minutes=30))
    )
    until(lambda: lead.told("finish_application") == [("whatsapp", "+4915112345678")], "she is told")
