"""However late a stage is, what has become untrue is not sent."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from producers import tenants
from tests.acceptance.house import DECIDING, DELIVERING, House, Lead, start, stays
from tests.acceptance.waiting import until

PAST = timedelta(seconds=-1)
ARMED = ("finish_application", "scheduled", None)
FIRES_WITHIN_S = 2.0
"""A clock that runs fires what is due long before."""


def hold(lead: Lead) -> None:
    """The tenant's clock stands an hour ago: what is due when it runs again is due then, and not before."""
    tenants.hold(lead.owner, lead.tenant, datetime.now(UTC) - timedelta(hours=1))


def test_no_stale_nudge_when_supersession_was_stopped(house: House, lead: Lead) -> None:
    """A further step is committed, nobody decides it, the old timer falls due, everything comes back."""
    hold(lead)
    with house.running(*DECIDING):
        start(lead, due_in=PAST)
        until(lambda: lead.decided() == 2, "the nudge is armed")
    lead.service.complete_credit_check("L-1", credit_score=700)
    tenants.release(lead.owner, lead.tenant)
    with house.running(*DELIVERING, "clock"):
        time.sleep(FIRES_WITHIN_S)
        stays(lambda: lead.nudges() == [ARMED], "its past is not complete")
    with house.running(*DECIDING, *DELIVERING, "clock"):
        until(lambda: lead.decided() == 3, "the step is decided")
        stays(lambda: lead.told("finish_application") == [], "the old nudge is never sent")
    assert lead.nudges()[0] == ("finish_application", "cancelled", "superseded")


def test_no_stale_nudge_when_capture_was_stopped(house: House, lead: Lead) -> None:
    """The same with Connect killed: the further step is not even in Kafka."""
    hold(lead)
    with house.running(*DECIDING, *DELIVERING, "clock"):
        start(lead, due_in=PAST)
        until(lambda: lead.decided() == 2, "the nudge is armed")
        house.stack.kill("connect")
        try:
            lead.service.complete_credit_check("L-1", credit_score=700)
            tenants.release(lead.owner, lead.tenant)
            time.sleep(FIRES_WITHIN_S)
            stays(lambda: lead.nudges() == [ARMED], "its past is not complete")
        finally:
            house.stack.restart("connect")
        until(lambda: lead.decided() == 3, "the step is decided")
        stays(lambda: lead.told("finish_application") == [], "the old nudge is never sent")
    assert lead.nudges()[0] == ("finish_application", "cancelled", "superseded")


def test_no_stale_nudge_when_only_the_delivery_is_late(house: House, lead: Lead) -> None:
    with house.running(*DECIDING, "clock"):
        start(lead, due_in=timedelta(seconds=1))
        until(lambda: ("finish_application", "pending", None) in lead.nudges(), "the nudge fires")
        until(lambda: len(lead.deliveries()) >= 3, "its deliveries are prepared")
        lead.service.complete_credit_check("L-1", credit_score=700)
        until(lambda: lead.nudges()[0][1] == "cancelled", "it is superseded")
    with house.running(*DELIVERING):
        until(
            lambda: ("whatsapp", "suppressed", "superseded") in lead.deliveries(),
            "the claim asks again and finds it superseded",
        )
        until(lambda: all(state != "queued" for _, state, _ in lead.deliveries()), "nothing is left")
    assert lead.told("finish_application") == []
