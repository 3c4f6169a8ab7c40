"""Who is told: applicants and advisors in the directory, with all that may keep a message from somebody.

Which lead has whom follows from the lead's number, the same in every run. Most have a phone and an advisor. Some
applicants are not active any more; some have no phone before they verify one, and of these nobody is the advisor:
their first reminder falls due with nobody to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psycopg

from producers import directory
from producers.directory import Contact
from producers.products.loans.service import PRODUCT

ADVISORS = 4
PLACES = (("en", "Asia/Kolkata"), ("de", "Europe/Berlin"))
"""Locale and zone, in turn."""


def applicant_of(lead: str) -> str:
    """The applicant's user id."""
    return f"u-{lead}"


def advisor_of(lead: str, *, next_one: bool = False) -> str | None:
    """Who advises the lead's applicant from the beginning, if anybody does; or who does when another takes over."""
    number = _number(lead)
    if _is_out_of_reach(number) and not next_one:
        return None
    return f"u-advisor-{(number + next_one) % ADVISORS}"


def phone_of(lead: str) -> str:
    """Where the applicant is reached on WhatsApp; in E.164."""
    return f"+4930{_number(lead):08}"


def contact_of(lead: str) -> Contact:
    """The applicant in the directory, before the storm."""
    number = _number(lead)
    locale, zone = PLACES[number % len(PLACES)]
    return Contact(
        first_name=f"Applicant {number}",
        email=f"{applicant_of(lead)}@example.com",
        phone=None if _is_out_of_reach(number) else phone_of(lead),
        locale=locale,
        zone=zone,
        active=number % 20 != 7,
    )


def enrol(domain_dsn: str, tenants: Sequence[str], leads: Iterable[str]) -> None:
    """Write the people of these leads into each tenant's directory, in one transaction."""
    named = list(leads)
    with psycopg.connect(domain_dsn) as conn, conn.pipeline():
        for tenant in tenants:
            for number in range(ADVISORS):
                user = f"u-advisor-{number}"
                directory.put_contact(
                    conn,
                    tenant,
                    user,
                    Contact(f"Advisor {number}", f"{user}@{tenant}.example.com", f"+4940{number:08}"),
                )
            for lead in named:
                directory.put_contact(conn, tenant, applicant_of(lead), contact_of(lead))
                if (advisor := advisor_of(lead)) is not None:
                    directory.assign(conn, tenant, PRODUCT, lead, "advisor", advisor)


def _number(lead: str) -> int:
    return int(lead.rpartition("-")[2])


def _is_out_of_reach(number: int) -> bool:
    return number % 10 == 3
