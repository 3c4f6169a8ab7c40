"""`tellonce deliveries`; and `why` and `status` where they tell of messages: what was sent, and what holds it up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from deploy.cli.exits import Exit
from deploy.local.stack import Stack
from producers.directory import Contact
from tests.acceptance.conftest import Tellonce
from tests.acceptance.desk import PHONE, REASONS, TEXT, Desk, v8
from tests.acceptance.house import ADVISOR, APPLICANT, DECIDING, DELIVERING, House, Lead, ago
from tests.acceptance.waiting import until
from tests.deliveries import WAY_TO


@pytest.fixture
def desk(pipeline: Stack, tenant: str) -> Iterator[Desk]:
    """A fresh tenant's; what a test leaves is not left to be sent."""
    with psycopg.connect(pipeline.owner_dsn, autocommit=True) as owner:
        yield Desk(owner, tenant)
        owner.execute(
            "UPDATE platform.delivery SET state = 'suppressed', reason = 'cancelled'"
            " WHERE tenant_id = %s AND state IN ('queued', 'sending', 'held')",
            [tenant],
        )


@pytest.mark.timeout(300)
def test_deliveries_are_listed_the_latest_first_and_by_what_is_asked(desk: Desk, tellonce: Tellonce) -> None:
    queued = desk.delivery()
    mail = desk.delivery("sent", channel="email", subject_id="L-2")
    held = desk.delivery("held", kind="loans.disbursed")

    def listed(options: str = "") -> set[str]:
        return {
            each["delivery_id"] for each in tellonce(f"deliveries --tenant {desk.tenant} --json {options}")
        }

    assert listed() == {queued, mail, held}
    assert listed("--subject L-2") == listed("--state sent") == listed("--channel email") == {mail}
    assert listed("--kind loans.disbursed") == listed("--state held --state failed") == {held}
    latest = tellonce(f"deliveries list --tenant {desk.tenant} --limit 2 --json")
    assert [each["delivery_id"] for each in latest] == sorted(desk.ids, reverse=True)[:2]
    assert tellonce("deliveries --tenant nobody --json") == []


@pytest.mark.timeout(300)
def test_a_table_of_deliveries_names_no_address(
    desk: Desk, tellonce: Tellonce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TELLONCE_ADMIN_DATABASE_URL")  # looking needs no more than the consumer's login
    whatsapp = desk.delivery("held")
    custom = desk.delivery(role="address", user_id="board@people.example", channel="email")

    shown = tellonce(f"deliveries --tenant {desk.tenant}")
    (row,) = tellonce(f"deliveries --tenant {desk.tenant} --channel email --json")
    one = tellonce(f"deliveries show {custom}")

    assert "applicant ada" in shown
    assert "unknown_outcome" in shown
    assert whatsapp in shown
    assert (row["user_id"], row["role"]) == (None, "address")
    for said in (shown, one):
        assert "an address" in said
        assert "board@" not in said


@pytest.mark.timeout(300)
def test_one_delivery_is_shown_with_its_attempts_and_its_body_only_when_asked(
    desk: Desk, tellonce: Tellonce
) -> None:
    delivery = desk.delivery("failed")
    desk.frozen(delivery)
    desk.tried(delivery, 1, "retry", status=503, error="overloaded", latency_ms=1_200)
    desk.tried(delivery, 2, "rejected", status=400, error="no such number", latency_ms=34)

    closed = tellonce(f"deliveries show {delivery} --json")
    opened = tellonce(f"deliveries show {delivery} --body --json")
    people = tellonce(f"deliveries show {delivery.upper()}")

    assert closed["delivery"]["state"] == "failed"
    assert closed["words"] == (
        "failed: the provider refused it (attempt 2, rejected, status 400, 34 ms: no such number)"
    )
    assert [
        (each["attempt"], each["outcome"], each["status"], each["latency_ms"], each["error"])
        for each in closed["attempts"]
    ] == [(1, "retry", 503, 1_200, "overloaded"), (2, "rejected", 400, 34, "no such number")]
    assert closed["body"]["shape"] == {"text": f"text of {len(TEXT)}"}
    for said in (json.dumps(closed), people):
        assert PHONE not in said
        assert TEXT not in said
    assert "overloaded" in people
    assert "--body shows it" in people
    assert (opened["body"]["address"], opened["body"]["content"]) == (PHONE, {"text": TEXT})
    assert TEXT in tellonce(f"deliveries show {delivery} --body")


@pytest.mark.timeout(300)
def test_before_its_first_claim_a_delivery_has_neither_body_nor_attempts(
    desk: Desk, tellonce: Tellonce
) -> None:
    delivery = desk.delivery()

    found = tellonce(f"deliveries show {delivery} --json")

    assert (found["body"], found["attempts"]) == (None, [])
    assert found["words"].startswith("queued, due ")
    assert "not frozen yet" in tellonce(f"deliveries show {delivery}")


@pytest.mark.timeout(300)
def test_what_is_on_hold_is_queued_again_due_now(desk: Desk, tellonce: Tellonce) -> None:
    first, second = desk.delivery("held", due_at="2026-01-01"), desk.delivery("held")

    tellonce(f"deliveries retry {first} {second} {first}")

    (found,) = tellonce(f"deliveries --tenant {desk.tenant} --limit 1 --json")
    assert [desk.state(each) for each in (first, second)] == [("queued", None)] * 2
    assert found["lease_until"] is None
    due = desk.owner.execute(
        "SELECT count(*) FROM platform.delivery WHERE tenant_id = %s AND due_at > now() - interval '1 minute'"
        " AND due_at <= platform.clock_now()",
        [desk.tenant],
    ).fetchone()
    assert due == (2,)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", [state for state in WAY_TO if state != "held"])
def test_nothing_else_is_retried_and_with_it_nothing_at_all(
    desk: Desk, tellonce: Tellonce, state: str
) -> None:
    held, other = desk.delivery("held"), desk.delivery(state)

    tellonce(f"deliveries retry {held} {other}", code=Exit.PROBLEMS)

    assert desk.state(held) == ("held", "unknown_outcome")
    assert desk.state(other) == (state, REASONS.get(state))


@pytest.mark.timeout(300)
def test_what_waits_is_cancelled_whoever_waited_behind_it_goes_and_a_nudge_of_nobody_ends(
    desk: Desk, tellonce: Tellonce
) -> None:
    nudge = desk.nudge()
    queued = desk.delivery(nudge_id=nudge)
    behind = desk.delivery(due_at="2099-01-01", reason="in_order")
    held = desk.delivery("held", channel="email", nudge_id=nudge)

    def of_nudge() -> tuple[Any, ...] | None:
        return desk.owner.execute(
            "SELECT state::text, reason FROM platform.nudge WHERE nudge_id = %s", [nudge]
        ).fetchone()

    tellonce(f"deliveries cancel {queued}")
    assert desk.state(queued) == ("suppressed", "cancelled")
    assert desk.state(behind) == ("queued", None), "its turn has come"
    assert of_nudge() == ("pending", None), "one of its messages may still go"

    tellonce(f"deliveries cancel {held}")
    assert desk.state(held) == ("suppressed", "cancelled")
    assert of_nudge() == ("cancelled", "suppressed")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("state", [state for state in WAY_TO if state not in ("queued", "held")])
def test_nothing_else_is_cancelled_and_with_it_nothing_at_all(
    desk: Desk, tellonce: Tellonce, state: str
) -> None:
    queued, other = desk.delivery(), desk.delivery(state)

    tellonce(f"deliveries cancel {queued} {other}", code=Exit.PROBLEMS)

    assert desk.state(queued) == ("queued", None)
    assert desk.state(other) == (state, REASONS.get(state))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("verb", ["show", "retry", "cancel"])
def test_an_id_that_is_nobody_s_is_a_problem(desk: Desk, tellonce: Tellonce, verb: str) -> None:
    held = desk.delivery("held")
    ids = v8() if verb == "show" else f"{held} {v8()}"

    tellonce(f"deliveries {verb} {ids}", code=Exit.PROBLEMS)

    assert desk.state(held) == ("held", "unknown_outcome")


@pytest.mark.timeout(300)
def test_status_counts_by_channel_and_state_and_what_is_on_hold_is_an_alarm(
    desk: Desk, tellonce: Tellonce
) -> None:
    def counted(channel: str, state: str) -> dict[str, Any]:
        of_state = [
            each
            for each in tellonce("status --json", code=None)["deliveries"]
            if (each["channel"], each["state"]) == (channel, state)
        ]
        return of_state[0] if of_state else {"count": 0, "due": 0}

    before = counted("sms", "queued"), counted("sms", "held")
    desk.delivery(channel="sms", due_at="2026-01-01T00:00:00Z")
    desk.delivery(channel="sms", due_at="2099-01-01T00:00:00Z", reason="no_account")
    desk.delivery("held", channel="sms")

    queued, held = counted("sms", "queued"), counted("sms", "held")
    problems = tellonce("status --json", code=Exit.PROBLEMS)["problems"]

    assert (queued["count"] - before[0]["count"], queued["due"] - before[0]["due"]) == (2, 1)
    assert queued["oldest_due_at"] == "2026-01-01T00:00:00Z"
    assert held["count"] - before[1]["count"] == 1
    assert any(each.startswith("deliveries on sms: 1 on hold") for each in problems)
    assert any("wait for a provider's account" in each for each in problems)
    shown = tellonce("status", code=None)
    assert "deliveries on sms" in shown
    assert "1 of them due, the first since 2026-01-01T00:00:00Z" in shown


@pytest.mark.timeout(300)
def test_why_reaches_to_the_provider_s_answer(house: House, lead: Lead, tellonce: Tellonce) -> None:
    """A nudge told and news told, one provider that refuses; and a lead of whom nobody can be told anything."""
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=APPLICANT, occurred_at=ago(timedelta(minutes=30))
    )
    lead.service.assign_advisor("L-1", advisor_id="ben", contact=ADVISOR)
    lead.service.start_application(
        "L-2",
        applicant_id="eve",
        contact=Contact(first_name="Eve", active=False),
        occurred_at=ago(timedelta(minutes=30)),
    )
    lead.service.assign_advisor("L-2", advisor_id="nobody-known")

    with house.running(*DECIDING, *DELIVERING, "clock"):
        until(lambda: len(lead.deliveries()) == 5, "two messages of the news, three of the nudge")
        until(lambda: all(state == "sent" for _, state, _ in lead.deliveries()), "all are sent")
        until(lambda: ("finish_application", "cancelled", "nobody") in lead.nudges(), "nobody to tell")

    (story,) = tellonce(f"why --tenant {lead.tenant} --subject L-1 --json")
    initiated, assigned, due = story["events"]
    assert [event["event_type"] for event in story["events"]] == [
        "loans.initiated",
        "loans.advisor_assigned",
        "tellonce.nudge_due",
    ]
    assert {each["group"]: each["outcome"] for each in initiated["decisions"]} == {
        "supersession.loans": "scheduled",
        "rules.loans": "ignored",
    }
    assert initiated["notified"] == [], "a nudge's messages stand where it fell due"
    assert {each["group"]: each["outcome"] for each in assigned["decisions"]} == {
        "supersession.loans": "lifecycle",
        "rules.loans": "fired",
    }
    assert [each["words"] for each in due["decisions"]] == ["nudge loans.finish_application told"]
    assert channels(assigned) == {"inapp": ("ada", "sent"), "whatsapp": ("ada", "sent")}
    assert channels(due) == {
        "inapp": ("ben", "sent"),
        "email": ("ben", "sent"),
        "whatsapp": ("ada", "sent"),
    }
    references = {each.delivery: each.reference for each in lead.arrivals()}
    told = [
        message for event in (assigned, due) for each in event["notified"] for message in each["messages"]
    ]
    for message in told:
        delivery = message["delivery"]
        assert delivery["provider_ref"] == references.get(delivery["delivery_id"])
        if delivery["channel"] != "inapp":
            (attempt,) = message["attempts"]
            assert (attempt["outcome"], attempt["provider_ref"]) == ("accepted", delivery["provider_ref"])
            assert message["words"].startswith(f"sent as {delivery['provider_ref']} (attempt 1, accepted")

    shown = tellonce(f"why --tenant {lead.tenant} --subject L-1")
    assert "→ loans.finish_application to advisor ben on inapp: shown" in shown
    assert "→ loans.advisor_assigned to applicant ada on whatsapp: sent as " in shown
    assert PHONE not in shown

    (untold,) = tellonce(f"why --tenant {lead.tenant} --subject L-2 --json")
    said = {
        (event["event_type"], each["group"]): (each["outcome"], each["reason"], each["words"])
        for event in untold["events"]
        for each in event["decisions"]
    }
    outcome, reason, words = said["loans.advisor_assigned", "rules.loans"]
    assert (outcome, reason) == ("fired", "nobody")
    assert words.startswith("the news to be told, and nobody to tell")
    outcome, reason, words = said["tellonce.nudge_due", "supersession.loans"]
    assert (outcome, reason) == ("cancelled", "nobody")
    assert words.startswith("nudge loans.finish_application due and cancelled: nobody to tell")
    (nudge,) = tellonce(f"nudges --tenant {lead.tenant} --subject L-2 --all --json")
    assert (nudge["state"], nudge["reason"]) == ("cancelled", "nobody")


def channels(event: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Whom an event's messages went to and what became of them, by channel."""
    return {
        message["delivery"]["channel"]: (message["delivery"]["user_id"], message["delivery"]["state"])
        for each in event["notified"]
        for message in each["messages"]
    }
