"""A known story on the real pipeline, and what `why`, `nudges`, `dead-letter` and `status` say of it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer

from deploy.cli.exits import Exit
from deploy.demo.processes import running
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from producers import outbox, tenants
from producers.directory import Contact
from producers.products.loans.service import PRODUCT, LoanService, install
from tests.acceptance.conftest import Tellonce
from tests.acceptance.waiting import until

GROUP = f"supersession.{PRODUCT}"
LEAD = "lead-1"
BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Before the events are recorded, so that a nudge is due by what happened, not by when this test ran."""


def at(minutes: int) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


@pytest.fixture(scope="module")
def told(pipeline: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A tenant, once supersession has decided all that happened to its lead; the group runs on."""
    tenant = f"t-{uuid.uuid4().hex[:16]}"
    with psycopg.connect(pipeline.owner_dsn, autocommit=True) as owner:
        install(owner)
        tenants.create(owner, tenant, roles=[DOMAIN])
    log = tmp_path_factory.mktemp("looking") / "tellonce.log"
    with (
        psycopg.connect(pipeline.domain_dsn, autocommit=True) as conn,
        running(pipeline.settings, [GROUP], log) as processes,
    ):
        events = live_through(conn, tenant)

        def all_decided() -> bool:
            processes.check()
            return decided(conn, tenant) == events

        until(all_decided, "every event decided")
        yield tenant


def live_through(conn: psycopg.Connection[Any], tenant: str) -> int:
    """The article's story with what it leaves out; returns how many events there are."""
    loans = LoanService(conn, tenant)
    contact = Contact("Ana", phone="+4930123456")
    loans.start_application(LEAD, applicant_id="u-1", contact=contact, occurred_at=at(0))
    loans.complete_credit_check(LEAD, credit_score=700, occurred_at=at(4))
    loans.verify_phone(LEAD, phone="+4930654321", occurred_at=at(2))  # late: it comes after what it led to
    loans.assign_advisor(LEAD, advisor_id="a-1", occurred_at=at(5))
    loans.submit_offer(LEAD, offer_id="o-1", amount=1_000_00, occurred_at=at(9))
    loans.withdraw(LEAD, occurred_at=at(10))
    loans.reapply(LEAD, occurred_at=at(20))
    loans.start_application(LEAD, applicant_id="u-1", occurred_at=at(21))
    mistype(conn, tenant, LEAD)
    return 9


def mistype(conn: psycopg.Connection[Any], tenant: str, lead: str) -> str:
    """An event of a type that the product does not have; the outbox takes it, no group can decide it."""
    with conn.transaction():
        return outbox.append(
            conn,
            tenant_id=tenant,
            product=PRODUCT,
            subject_id=lead,
            event_type="loans.phone_verifed",
            payload={"applicant_id": "u-1"},
        )


def decided(conn: psycopg.Connection[Any], tenant: str) -> int:
    row = conn.execute("SELECT count(*) FROM platform.decision WHERE tenant_id = %s", [tenant]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.timeout(300)
def test_why_tells_each_event_in_commit_order_and_what_became_of_it(told: str, tellonce: Tellonce) -> None:
    (story,) = tellonce(f"why --tenant {told} --subject {LEAD} --json")

    assert (story["tenant"], story["product"], story["subject"]) == (told, PRODUCT, LEAD)
    assert story["reached"] == ["loans.initiated"]
    assert story["epoch_began_at"] == "2026-01-05T09:20:00Z"
    assert [
        (event["event_type"].partition(".")[2], decision["outcome"], decision["reason"])
        for event in story["events"]
        for decision in event["decisions"]
    ] == [
        ("initiated", "scheduled", None),
        ("credit_check_done", "scheduled", None),
        ("phone_verified", "dropped", "not_further"),
        ("advisor_assigned", "lifecycle", None),
        ("offer_submitted", "immediate", None),
        ("withdrawn", "ended", None),
        ("reapplied", "restarted", None),
        ("initiated", "scheduled", None),
        ("phone_verifed", "dead_letter", "unknown_type"),
    ]
    words = [decision["words"] for event in story["events"] for decision in event["decisions"]]
    assert words[1] == (
        "nudge loans.explore_savings due 2026-01-05T09:19:00Z; "
        "nudge loans.finish_application cancelled (superseded)"
    )
    assert words[4] == "told at once; nudge loans.explore_savings cancelled (superseded)"


@pytest.mark.timeout(300)
def test_why_reads_well_on_a_terminal_and_names_nobody_it_does_not_know(
    told: str, tellonce: Tellonce
) -> None:
    shown = tellonce(f"why --tenant {told} --subject {LEAD}")

    assert "reached: initiated" in shown
    assert "it is not further than what was already reached" in shown
    assert re.search(r"dead letter \d+: the product has no such event type", shown)
    assert tellonce(f"why --tenant {told} --subject nobody --json", code=Exit.PROBLEMS) == []
    assert tellonce(f"why --tenant {told} --subject {LEAD} --product other --json", code=Exit.PROBLEMS) == []


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("told")
def test_why_shows_what_somebody_else_wrote_to_the_topic_where_it_was_met(
    pipeline: Stack, tenant: str, tellonce: Tellonce
) -> None:
    """Such a record has no row in the outbox and no decision: only its key says whose it is."""

    def events(lead: str) -> list[dict[str, Any]]:
        stories = tellonce(f"why --tenant {tenant} --subject {lead} --json", code=None)
        return [event for story in stories for event in story["events"] if event["decisions"]]

    with psycopg.connect(pipeline.domain_dsn, autocommit=True) as conn:
        loans = LoanService(conn, tenant)
        loans.start_application(LEAD, applicant_id="u-1", occurred_at=at(0))
        until(lambda: len(events(LEAD)) == 1, "the first event is decided")
        foreign_records(pipeline, f"{tenant}:{LEAD}", f"{tenant}:lead-2")
        until(lambda: len(events(LEAD)) == 2, "the foreign record is a dead letter")
        loans.verify_phone(LEAD, phone="+4930654321", occurred_at=at(2))
        until(lambda: len(events(LEAD)) == 3, "the last event is decided")

    told = events(LEAD)
    assert [event["event_type"] for event in told] == ["loans.initiated", None, "loans.phone_verified"]
    (decision,) = told[1]["decisions"]
    assert (decision["outcome"], decision["reason"]) == ("dead_letter", "missing_header")
    number = decision["dead_letter"]
    assert decision["words"] == f"dead letter {number}: a header or the key is missing"
    assert tellonce(f"dead-letter show {number} --json")["record_key"] == f"{tenant}:{LEAD}"
    until(lambda: len(events("lead-2")) == 1, "a lead that nothing else is known of has its story, too")


def foreign_records(stack: Stack, *keys: str) -> None:
    """Records past the outbox, without any of its headers."""
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    for key in keys:
        producer.produce(f"events.{PRODUCT}", key=key, value=b"{}")
    assert producer.flush(30) == 0


@pytest.mark.timeout(300)
def test_nudges_shows_the_live_one_and_on_demand_the_history(told: str, tellonce: Tellonce) -> None:
    (live,) = tellonce(f"nudges --tenant {told} --json")
    every = tellonce(f"nudges --tenant {told} --subject {LEAD} --all --json")

    assert (live["kind"], live["state"], live["due_at"]) == (
        "loans.finish_application",
        "scheduled",
        "2026-01-05T09:51:00Z",
    )
    assert [(each["kind"].partition(".")[2], each["state"], each["reason"]) for each in every] == [
        ("explore_savings", "cancelled", "superseded"),
        ("finish_application", "cancelled", "superseded"),
        ("finish_application", "scheduled", None),
    ]
    by_kind = f"nudges --tenant {told} --state cancelled --kind loans.explore_savings --json"
    assert [each["nudge_id"] for each in tellonce(by_kind)] == [every[0]["nudge_id"]]
    assert tellonce(f"nudges --tenant {told} --due-before 2026-01-05T09:51:00Z --json") == []
    assert tellonce(f"nudges --tenant {told} --all --limit 1 --json") == every[:1]


@pytest.mark.timeout(300)
def test_a_dead_letter_is_listed_shown_retried_and_discarded(
    pipeline: Stack, told: str, tellonce: Tellonce
) -> None:
    with psycopg.connect(pipeline.domain_dsn, autocommit=True) as conn:
        event_id = mistype(conn, told, "lead-2")

    def listed(options: str = "") -> list[dict[str, Any]]:
        found = tellonce(f"dead-letter list --tenant {told} --reason unknown_type --json {options}")
        return [each for each in found if each["event_id"] == event_id]

    until(lambda: len(listed()) == 1, "the event is a dead letter")
    (dead,) = listed()
    number = dead["dead_letter_id"]
    assert (dead["group_name"], dead["event_type"], dead["state"]) == (GROUP, "loans.phone_verifed", "open")
    assert tellonce(f"dead-letter show {number} --json")["body"] == '{"applicant_id":"u-1"}'

    tellonce(f"dead-letter retry {number}")
    until(lambda: len(listed()) == 1, "what was sent again comes back")
    (again,) = listed()
    tellonce(f"dead-letter discard {again['dead_letter_id']} --note misspelt")

    closed = [(each["state"], each["note"]) for each in listed("--all")]
    assert closed == [("discarded", "misspelt"), ("retried", None)]
    tellonce(f"dead-letter retry {number}", code=Exit.PROBLEMS)


@pytest.mark.timeout(300)
def test_status_tells_of_the_stream_and_of_what_needs_a_person(told: str, tellonce: Tellonce) -> None:
    found = tellonce("status --json", code=Exit.PROBLEMS)

    assert found["capture"]["streaming"] is True
    assert {each["group"] for each in found["groups"]} >= {GROUP}
    assert any(each["product"] == PRODUCT and each["live"] >= 1 for each in found["nudges"])
    assert any(each["reason"] == "unknown_type" and each["open"] >= 1 for each in found["dead_letters"])
    assert any("open dead letters" in problem for problem in found["problems"])


@pytest.mark.timeout(300)
def test_status_hides_nothing_when_the_broker_and_connect_are_away(
    told: str, tellonce: Tellonce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELLONCE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("TELLONCE_CONNECT_URL", "http://127.0.0.1:1")

    found = tellonce("status --json", code=Exit.UNAVAILABLE)

    assert found["capture"] is None
    assert found["groups"] is None
    assert any(each["product"] == PRODUCT for each in found["nudges"])
    assert any("TELLONCE_CONNECT_URL" in problem for problem in found["problems"])
    assert any("TELLONCE_KAFKA_BOOTSTRAP" in problem for problem in found["problems"])
