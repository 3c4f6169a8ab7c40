"""A house with a lead in it: the run's stack, local providers, and every process as `tellonce run` starts it.

The Clock is everybody's, so no test moves it: what shall be due soon happened so long ago.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from deploy.cli.children import Children
from deploy.local.stack import Stack
from deploy.providers.inbox import Arrival
from deploy.providers.running import LocalProviders
from producers.directory import Contact
from producers.products.loans.service import LoanService

DECIDING = ("supersession.loans", "rules.loans")
DELIVERING = ("delivery.whatsapp", "delivery.email", "delivery.inapp")
SOON = timedelta(seconds=3)
"""Time enough to commit what comes before it is due."""
QUIET_S = 1.5
"""What has not come by then, when everything else has long been decided, does not come."""

APPLICANT = Contact(first_name="Ada", email="ada@people.example", phone="+4915112345678")
ADVISOR = Contact(first_name="Ben", email="ben@house.example", phone="+4915187654321")


@dataclass
class House:
    """The stack, its providers, and the processes that a test starts and stops."""

    stack: Stack
    local: LocalProviders
    environment: dict[str, str]
    log: Path

    @contextmanager
    def running(self, *groups: str) -> Iterator[None]:
        """These processes, inside the `with`."""
        with self.log.open("ab") as log, Children(groups, self.environment, log=log) as children:
            yield
            assert children.ended() is None, self.log.read_text()[-3_000:]


@dataclass
class Lead:
    """One tenant with one lead, its applicant and its advisor."""

    house: House
    tenant: str
    service: LoanService
    owner: psycopg.Connection[Any]

    def told(self, kind: str) -> list[tuple[str, str]]:
        """(channel, whom) of what arrived of a kind, sorted: at a provider, or as a row that the app shows."""
        of_kind = self.owner.execute(
            "SELECT delivery_id::text FROM platform.delivery WHERE tenant_id = %s AND kind = %s",
            [self.tenant, f"loans.{kind}"],
        ).fetchall()
        ids = {row[0] for row in of_kind}
        shown = self.owner.execute(
            "SELECT delivery_id::text, user_id FROM platform.inapp_message WHERE tenant_id = %s",
            [self.tenant],
        ).fetchall()
        return sorted(
            [(each.channel, each.to) for each in self.arrivals() if each.delivery in ids]
            + [("inapp", user) for delivery, user in shown if delivery in ids]
        )

    def arrivals(self) -> list[Arrival]:
        """What the providers have of this tenant."""
        return [each for each in list(self.house.local.inbox.arrivals) if each.tenant == self.tenant]

    def nudges(self) -> list[tuple[str, str, str | None]]:
        """(kind, state, reason) in the order they were armed."""
        return self.owner.execute(
            "SELECT split_part(kind, '.', 2), state::text, reason FROM platform.nudge WHERE tenant_id = %s"
            " ORDER BY created_at, nudge_id",
            [self.tenant],
        ).fetchall()

    def deliveries(self) -> list[tuple[str, str, str | None]]:
        """(channel, state, reason), by channel."""
        return self.owner.execute(
            "SELECT channel, state::text, reason FROM platform.delivery WHERE tenant_id = %s ORDER BY channel, seq",
            [self.tenant],
        ).fetchall()

    def decided(self, group: str = "supersession.loans") -> int:
        """How many events the group has decided."""
        row = self.owner.execute(
            "SELECT count(*) FROM platform.decision WHERE tenant_id = %s AND group_name = %s",
            [self.tenant, group],
        ).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def lead_of(house: House, tenant: str) -> Iterator[Lead]:
    """The tenant's lead, on connections of its own."""
    with (
        psycopg.connect(house.stack.domain_dsn, autocommit=True) as domain,
        psycopg.connect(house.stack.owner_dsn, autocommit=True) as owner,
    ):
        yield Lead(house, tenant, LoanService(domain, tenant), owner)


def ago(after: timedelta, due_in: timedelta = SOON) -> datetime:
    """When a step happened whose nudge, `after` it, is due in `due_in`."""
    return datetime.now(UTC) - after + due_in


def start(lead: Lead, due_in: timedelta = SOON) -> None:
    """The lead has an applicant, an advisor and the thirty-minute nudge of its first step."""
    lead.service.start_application(
        "L-1", applicant_id="ada", contact=APPLICANT, occurred_at=ago(timedelta(minutes=30), due_in)
    )
    lead.service.assign_advisor("L-1", advisor_id="ben", contact=ADVISOR)


def stays(holds: Callable[[], bool], what: str) -> None:
    """It holds, and goes on to."""
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        assert holds(), what
        time.sleep(0.1)
