"""The loan service changes its rows and tells of it in one transaction, or does neither."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg
import pytest
from psycopg import Connection

from deploy.local.stack import Stack
from producers import directory
from producers.directory import Contact
from producers.outbox import EventConflictError, InvalidEventError, UnknownTenantError
from producers.products.loans.application import InvalidMoveError, Move, State, UnknownLeadError
from producers.products.loans.service import LoanService

LEAD = "L-1"


def told(conn: Connection[Any], tenant: str) -> list[tuple[str, dict[str, Any]]]:
    rows = conn.execute(
        "SELECT event_type, payload FROM platform.outbox WHERE tenant_id = %s ORDER BY position", [tenant]
    ).fetchall()
    return [(event_type, orjson.loads(payload)) for event_type, payload in rows]


def whole_journey(loans: LoanService) -> list[str]:
    """Every move there is, once at least; returns the ids."""
    return [
        loans.start_application(LEAD, applicant_id="u-1"),
        loans.assign_advisor(LEAD, advisor_id="adv-1"),
        loans.verify_phone(LEAD, phone="+3161234"),
        loans.withdraw(LEAD, reason="too dear"),
        loans.reapply(LEAD),
        loans.complete_credit_check(LEAD, credit_score=710),
        loans.explore_savings(LEAD, savings_options=2),
        loans.view_offers(LEAD, offers=3),
        loans.submit_offer(LEAD, offer_id="O-1", amount=1_500_000),
        loans.sanction(LEAD),
        loans.disburse(LEAD),
    ]


def test_every_move_is_a_changed_row_and_an_event(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    ids = whole_journey(loans)
    application = loans.application(LEAD)
    assert (application.state, application.attempt, application.offer_id) == (State.DISBURSED, 2, "O-1")
    assert (application.advisor_id, application.credit_score) == ("adv-1", 710)
    events = told(domain, tenant)
    assert {event_type for event_type, _ in events} == set(Move)
    assert all(payload["applicant_id"] == "u-1" for _, payload in events)
    assert len(set(ids)) == len(events) == 11


def test_events_carry_no_phone_number(loans: LoanService, domain: Connection[Any], tenant: str) -> None:
    whole_journey(loans)
    assert "+3161234" not in str(told(domain, tenant))


def test_a_refused_event_leaves_the_application_as_it_was(
    installed: Stack, loans: LoanService, tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    loans.verify_phone(LEAD, phone="+31")
    with pytest.raises(psycopg.errors.CheckViolation):
        loans.complete_credit_check(LEAD, credit_score=5000)
    assert loans.application(LEAD).credit_score is None


def test_a_refused_move_tells_nobody(loans: LoanService, domain: Connection[Any], tenant: str) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    with pytest.raises(InvalidMoveError, match="needs withdrawn"):
        loans.reapply(LEAD)
    with pytest.raises(UnknownLeadError, match="L-2"):
        loans.verify_phone("L-2", phone="+31")
    assert len(told(domain, tenant)) == 1


def test_rolled_back_by_its_caller_nothing_happened(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    with domain.transaction(force_rollback=True):
        loans.start_application(LEAD, applicant_id="u-1")
    assert told(domain, tenant) == []
    with pytest.raises(UnknownLeadError):
        loans.application(LEAD)


def test_a_retried_request_is_one_event_and_one_move(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    ((event_id,),) = domain.execute("SELECT uuidv7()::text").fetchall()
    assert loans.withdraw(LEAD, event_id=event_id) == event_id
    assert loans.withdraw(LEAD, event_id=event_id) == event_id
    assert [event_type for event_type, _ in told(domain, tenant)] == [Move.START, Move.WITHDRAW]


def test_the_id_of_one_request_is_not_anothers(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    ((event_id,),) = domain.execute("SELECT uuidv7()::text").fetchall()
    assert loans.submit_offer(LEAD, offer_id="O-1", amount=7, event_id=event_id.upper()) == event_id
    with pytest.raises(EventConflictError):
        loans.submit_offer(LEAD, offer_id="O-2", amount=9, event_id=event_id)
    with pytest.raises(EventConflictError):
        loans.withdraw(LEAD, event_id=event_id)
    application = loans.application(LEAD)
    assert (application.offer_id, application.amount, application.state) == ("O-1", 7, State.OPEN)
    with pytest.raises(InvalidEventError, match="'17' is no UUID"):
        loans.withdraw(LEAD, event_id="17")
    assert len(told(domain, tenant)) == 2


def test_beginning_again_is_an_event_and_no_second_application(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    loans.start_application(LEAD, applicant_id="u-1")
    assert loans.application(LEAD).attempt == 1
    assert len(told(domain, tenant)) == 2


def test_when_it_happened_is_the_domains_to_say(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    loans.start_application(LEAD, applicant_id="u-1", occurred_at=at)
    rows = domain.execute("SELECT occurred_at FROM platform.outbox WHERE tenant_id = %s", [tenant]).fetchall()
    assert rows == [(at,)]


def test_another_tenants_applications_are_neither_seen_nor_changed(
    installed: Stack, loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    other = f"t-{uuid.uuid4().hex[:16]}"
    with psycopg.connect(installed.owner_dsn, autocommit=True) as owner:
        owner.execute(
            "INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES (%s, 'B', now())", [other]
        )
    with pytest.raises((UnknownTenantError, psycopg.errors.InsufficientPrivilege)):
        LoanService(domain, other).start_application(LEAD, applicant_id="u-9")
    with pytest.raises(UnknownLeadError):
        LoanService(domain, other).application(LEAD)
    assert loans.application(LEAD).applicant_id == "u-1"


def people(conn: Connection[Any], tenant: str) -> dict[str, tuple[str, str | None, str | None]]:
    """By role on the lead: who has it, and how they are reached."""
    rows = conn.execute(
        "SELECT a.role, a.user_id, c.email, c.phone FROM platform.assignment a"
        " LEFT JOIN platform.contact c ON c.tenant_id = a.tenant_id AND c.user_id = a.user_id"
        " WHERE a.tenant_id = %s AND a.product = 'loans' AND a.subject_id = %s",
        [tenant, LEAD],
    ).fetchall()
    return {role: tuple(person) for role, *person in rows}


def test_whoever_is_told_is_in_the_directory_with_the_event(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1", contact=Contact("Ana", email="ana@example.org"))
    loans.assign_advisor(LEAD, advisor_id="adv-1", contact=Contact("Ben", email="ben@example.org"))
    loans.verify_phone(LEAD, phone="+4930123456")
    assert people(domain, tenant) == {
        "applicant": ("u-1", "ana@example.org", "+4930123456"),
        "advisor": ("adv-1", "ben@example.org", None),
    }
    loans.assign_advisor(LEAD, advisor_id="adv-2")
    assert people(domain, tenant)["advisor"] == ("adv-2", None, None)


def test_beginning_again_leaves_the_applicant(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    loans.start_application(LEAD, applicant_id="u-1")
    loans.start_application(LEAD, applicant_id="u-2")
    assert people(domain, tenant)["applicant"][0] == "u-1"


def test_a_contact_that_is_refused_takes_the_move_with_it(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="contact_email_check"):
        loans.start_application(LEAD, applicant_id="u-1", contact=Contact(email="a@b\nBcc: c@d"))
    assert (people(domain, tenant), told(domain, tenant)) == ({}, [])


def test_the_directory_forgets(domain: Connection[Any], tenant: str) -> None:
    directory.put_contact(domain, tenant, "u-1", Contact("Ana", phone="+4930123456"))
    directory.put_contact(domain, tenant, "u-1", Contact("Ana", phone="+4930123456"))
    assert directory.set_phone(domain, tenant, "u-1", "+4930654321")
    assert directory.forget(domain, tenant, "u-1")
    assert not directory.forget(domain, tenant, "u-1")
    assert not directory.set_phone(domain, tenant, "u-1", "+4930123456")
    directory.assign(domain, tenant, "loans", LEAD, "advisor", "u-1")
    assert directory.unassign(domain, tenant, "loans", LEAD, "advisor")
    assert not directory.unassign(domain, tenant, "loans", LEAD, "advisor")
