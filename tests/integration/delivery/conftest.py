"""A bench for one worker: the providers it calls, the people it writes to, the deliveries it finds."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from connectors.providers.accounts import load_accounts
from connectors.providers.adapters import adapter_for
from connectors.registry import load_catalogue
from consumers.delivery.claim import Claimer
from consumers.delivery.desks import Desk, Desks
from consumers.delivery.metrics import DeliveryMetrics
from consumers.delivery.sender import Job, Sender
from consumers.delivery.worker import Mailbox, Worker
from consumers.runtime.database import Database
from deploy.local.stack import Stack
from deploy.providers.running import LocalProviders, run
from schemas.products.audience import Channel

WITHIN_S = 15.0
LINKS = "https://loans.example"


@pytest.fixture(scope="module")
def providers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalProviders, Path]]:
    """Both local providers, for this module."""
    accounts = tmp_path_factory.mktemp("providers") / "accounts.toml"
    stop, ready = threading.Event(), threading.Event()
    found: list[LocalProviders] = []

    def up(local: LocalProviders) -> None:
        found.append(local)
        ready.set()

    thread = threading.Thread(target=run, args=(stop,), kwargs={"accounts": accounts, "ready": up})
    thread.start()
    assert ready.wait(WITHIN_S)
    yield found[0], accounts
    stop.set()
    thread.join(WITHIN_S)


@dataclass
class Bench:
    """A tenant with one lead, and what happens to its deliveries."""

    stack: Stack
    owner: psycopg.Connection[Any]
    tenant: str
    local: LocalProviders
    accounts: Path
    exits: ExitStack = field(default_factory=ExitStack)

    def person(self, user: str, **columns: object) -> None:
        """Somebody in the directory."""
        row = {
            "active": True,
            "first_name": "Ada",
            "locale": "en",
            "zone": "UTC",
            "email": f"{user}@people.example",
        }
        row |= {"phone": "+4915112345678", "tenant_id": self.tenant, "user_id": user, **columns}
        names = ", ".join(row)
        self.owner.execute(
            f"INSERT INTO platform.contact ({names}) VALUES ({', '.join(['%s'] * len(row))})".encode(),
            list(row.values()),
        )

    def assign(self, user: str, role: str = "applicant", subject: str = "L-1") -> None:
        """The user has the role on the lead from now on."""
        self.owner.execute(
            "INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)"
            " VALUES (%s, 'loans', %s, %s, %s)"
            " ON CONFLICT (tenant_id, product, subject_id, role) DO UPDATE SET user_id = excluded.user_id",
            [self.tenant, subject, role, user],
        )

    def event(self, name: str = "initiated", subject: str = "L-1", **payload: object) -> str:
        """A committed event; its id."""
        row = self.owner.execute(
            "SELECT platform.append(%s, 'loans', %s, %s, %s::jsonb)::text",
            [
                self.tenant,
                subject,
                f"loans.{name}",
                psycopg.types.json.Json({"applicant_id": "a", **payload}),
            ],
        ).fetchone()
        assert row is not None
        return str(row[0])

    def nudge(self, event_id: str, state: str = "pending", step: str = "initiated") -> str:
        """The nudge that the event armed, with the lead's progress; and the decision on the event."""
        nudge_id = _v8()
        self.owner.execute(
            "INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, state, due_at,"
            " created_at, updated_at) VALUES (%s, %s, 'loans', 'L-1', 'loans.finish_application', %s, %s,"
            " 'scheduled', now(), now(), now())",
            [nudge_id, self.tenant, f"loans.{step}", event_id],
        )
        for later in {"pending": ["pending"], "sent": ["pending", "sent"]}.get(state, []):
            self.owner.execute(
                "UPDATE platform.nudge SET state = %s::platform.nudge_state WHERE nudge_id = %s",
                [later, nudge_id],
            )
        self.owner.execute(
            "INSERT INTO platform.journey_progress (tenant_id, product, subject_id, reached, updated_at)"
            " VALUES (%s, 'loans', 'L-1', %s, now()) ON CONFLICT DO NOTHING",
            [self.tenant, [f"loans.{step}"]],
        )
        self.decide(event_id)
        return nudge_id

    def decide(self, event_id: str) -> None:
        """Supersession has seen the event."""
        self.owner.execute(
            "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)"
            " VALUES (%s, %s, 'supersession.loans', 'scheduled', now())",
            [event_id, self.tenant],
        )

    def delivery(
        self,
        event_id: str,
        *,
        nudge_id: str | None = None,
        user: str = "a",
        role: str = "applicant",
        channel: str = "whatsapp",
        kind: str = "loans.finish_application",
        tenant: str | None = None,
        **columns: object,
    ) -> str:
        """A prepared delivery; its id."""
        notification, delivery = _v8(), _v8()
        shared = [tenant or self.tenant, kind, event_id, nudge_id, user, role]
        self.owner.execute(
            "INSERT INTO platform.notification (notification_id, intent_id, tenant_id, kind, event_id, nudge_id,"
            " user_id, role, product, subject_id, locale, zone, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'loans', 'L-1', 'en', 'UTC', now())",
            [notification, _v8(), *shared],
        )
        row = {"due_at": "now", "expires_at": None, **columns}
        self.owner.execute(
            "INSERT INTO platform.delivery (delivery_id, notification_id, tenant_id, kind, event_id, nudge_id, user_id,"
            " role, channel, product, subject_id, lane, due_at, expires_at, created_at, updated_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'loans', 'L-1', 'timers.loans', %s, %s, now(), now())",
            [delivery, notification, *shared, channel, row["due_at"], row["expires_at"]],
        )
        return delivery

    def ready(self, **columns: Any) -> str:
        """A delivery of a pending nudge to a lead's applicant, with everything in order; its id."""
        self.person("a")
        self.assign("a")
        event_id = self.event()
        return self.delivery(event_id, nudge_id=self.nudge(event_id), **columns)

    def row(self, delivery_id: str) -> tuple[Any, ...]:
        """(state, reason, attempts) of a delivery."""
        found = self.owner.execute(
            "SELECT state::text, reason, attempts FROM platform.delivery WHERE delivery_id = %s",
            [delivery_id],
        ).fetchone()
        assert found is not None
        return tuple(found)

    def nudge_state(self) -> tuple[Any, ...]:
        """(state, reason) of the tenant's one nudge."""
        found = self.owner.execute(
            "SELECT state::text, reason FROM platform.nudge WHERE tenant_id = %s", [self.tenant]
        ).fetchone()
        assert found is not None
        return tuple(found)

    def worker(self, channel: Channel = Channel.WHATSAPP, *, calls: bool = True) -> Rounds:
        """A worker of its own connection. Without `calls` its jobs are kept and nobody is called."""
        accounts = load_accounts(self.accounts)
        desks = Desks(
            [Desk(each, adapter_for(each)) for each in accounts.by_name.values() if each.channel == channel],
            lambda tenant: getattr(accounts.choose(channel.value, tenant), "name", None),
        )
        database = Database(self.stack.consumer_dsn, "test delivery")
        mailbox = Mailbox()
        kept: list[Any] = []
        submit: Callable[[Sequence[Job]], None] = kept.extend
        if calls:
            submit = self.exits.enter_context(Sender(desks.adapters, mailbox.answer)).submit
        self.exits.callback(database.close)
        worker = Worker(
            Claimer(channel, load_catalogue([]), LINKS),
            channel,
            database,
            mailbox,
            submit,
            desks,
            DeliveryMetrics(CollectorRegistry(), channel),
            lambda: False,
        )
        return Rounds(worker, mailbox, desks, kept)

    def arrivals(self) -> list[Any]:
        """What the provider has of this tenant."""
        return [each for each in list(self.local.inbox.arrivals) if each.tenant == self.tenant]


@dataclass
class Rounds:
    """A worker, driven by hand."""

    worker: Worker
    mailbox: Mailbox
    desks: Desks
    kept: list[Any]

    def once(self, *announced: tuple[str, str]) -> int:
        """One round."""
        self.mailbox.announce(announced)
        return self.worker.round()

    def through(self) -> None:
        """Rounds until no call is under way."""
        self.worker.round()
        deadline = time.monotonic() + WITHIN_S
        while self.desks.busy:
            assert time.monotonic() < deadline, "a call did not come back"
            time.sleep(0.005)
            self.worker.round(claiming=False)


@pytest.fixture
def bench(pg_only: Stack, tenant: str, providers: tuple[LocalProviders, Path]) -> Iterator[Bench]:
    """A fresh tenant; providers behave until told otherwise."""
    local, accounts = providers
    local.faults.clear()
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as owner:
        found = Bench(pg_only, owner, tenant, local, accounts)
        with found.exits:
            yield found
        # What one test leaves due, another's worker would claim.
        owner.execute(
            "UPDATE platform.delivery SET state = 'suppressed', reason = 'cancelled'"
            " WHERE tenant_id = %s AND state IN ('queued', 'sending', 'held')",
            [tenant],
        )


def _v8() -> str:
    seed = uuid.uuid4().hex
    return f"{seed[:8]}-{seed[8:12]}-8{seed[13:16]}-8{seed[17:20]}-{seed[20:]}"
