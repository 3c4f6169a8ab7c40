"""A small loan service, written as any domain service of this platform is.

The business rows change and the outbox row says so in one transaction: there is no second step that could be
forgotten, and nothing to retry by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, Unpack

from psycopg import Connection

from connectors.postgres import sql
from producers import directory, outbox
from producers.directory import Contact
from producers.products.loans.application import BECOMES, Application, Move, State, UnknownLeadError

PRODUCT = "loans"

_queries = sql.load("producers.products.loans", "queries.sql")
_schema = sql.load("producers.products.loans", "schema.sql")


def install(owner: Connection[Any]) -> None:
    """Make the service's own schema and table, as the database's owner; again changes nothing."""
    with owner.transaction():
        for block in _schema:
            owner.execute(_schema[block])


class When(TypedDict, total=False):
    """What every method takes beside its own."""

    occurred_at: datetime | None
    """Aware; without it, now by the database's clock."""
    event_id: str | None
    """A UUIDv7; the same request with it again changes nothing, and another request with it is refused."""


class LoanService:
    """The loan applications of one tenant, on one connection of role `loans_service`.

    Every method is one transaction (inside a caller's a savepoint), takes what `When` names, and returns the
    event's id. Raises `UnknownLeadError`, `InvalidMoveError` or `producers.outbox.OutboxError`; then the
    application has not changed and nothing was announced.
    """

    def __init__(self, conn: Connection[Any], tenant_id: str) -> None:
        self._conn = conn
        self._tenant = tenant_id

    def start_application(
        self, lead_id: str, *, applicant_id: str, contact: Contact | None = None, **when: Unpack[When]
    ) -> str:
        """Somebody begins an application, and is its applicant in the platform's directory from now on, reached as
        `contact` says. Beginning again is an event too, and no second application.
        """
        return self._do(Move.START, lead_id, {"applicant": applicant_id, "contact": contact}, {}, **when)

    def verify_phone(self, lead_id: str, *, phone: str, **when: Unpack[When]) -> str:
        """The phone number is the applicant's, and where they are told from now on if they have a contact. Events do
        not carry it: ids, not personal data.
        """
        return self._do(Move.VERIFY_PHONE, lead_id, {"phone": phone}, {}, **when)

    def complete_credit_check(self, lead_id: str, *, credit_score: int, **when: Unpack[When]) -> str:
        """The bureau has answered."""
        values = {"credit_score": credit_score}
        return self._do(Move.COMPLETE_CREDIT_CHECK, lead_id, values, values, **when)

    def explore_savings(self, lead_id: str, *, savings_options: int, **when: Unpack[When]) -> str:
        """The applicant has looked at what they could save."""
        values = {"savings_options": savings_options}
        return self._do(Move.EXPLORE_SAVINGS, lead_id, values, values, **when)

    def view_offers(self, lead_id: str, *, offers: int, **when: Unpack[When]) -> str:
        """The applicant has seen the lenders' offers."""
        return self._do(Move.VIEW_OFFERS, lead_id, {"offers": offers}, {"offers": offers}, **when)

    def submit_offer(self, lead_id: str, *, offer_id: str, amount: int, **when: Unpack[When]) -> str:
        """The applicant has chosen an offer; `amount` in the currency's minor unit."""
        values = {"offer_id": offer_id, "amount": amount}
        return self._do(Move.SUBMIT_OFFER, lead_id, values, values, **when)

    def withdraw(self, lead_id: str, *, reason: str | None = None, **when: Unpack[When]) -> str:
        """The applicant gives up; nothing reminds them any more."""
        return self._do(Move.WITHDRAW, lead_id, {}, {"reason": reason}, **when)

    def reapply(self, lead_id: str, **when: Unpack[When]) -> str:
        """The applicant begins afresh, as another attempt of the same lead."""
        return self._do(Move.REAPPLY, lead_id, {}, {}, **when)

    def sanction(self, lead_id: str, **when: Unpack[When]) -> str:
        """The lender has agreed."""
        return self._do(Move.SANCTION, lead_id, {}, {}, **when)

    def disburse(self, lead_id: str, **when: Unpack[When]) -> str:
        """The money is out."""
        return self._do(Move.DISBURSE, lead_id, {}, {}, **when)

    def assign_advisor(
        self, lead_id: str, *, advisor_id: str, contact: Contact | None = None, **when: Unpack[When]
    ) -> str:
        """A sales advisor looks after the applicant from now on, reached as `contact` says."""
        columns = {"advisor": advisor_id, "contact": contact}
        return self._do(Move.ASSIGN_ADVISOR, lead_id, columns, {"advisor_id": advisor_id}, **when)

    def application(self, lead_id: str) -> Application:
        """The application as it stands."""
        with self._conn.transaction():
            self._narrow()
            return self._load("read", lead_id)

    def _do(
        self,
        move: Move,
        lead_id: str,
        columns: Mapping[str, object],
        payload: Mapping[str, object],
        **when: Unpack[When],
    ) -> str:
        key = {"tenant": self._tenant, "lead": lead_id}
        with self._conn.transaction():
            self._narrow()
            if move is Move.START:
                self._conn.execute(_queries["start"], {**key, **columns})
            application = self._load("lock", lead_id)
            event = outbox.NewEvent(
                tenant_id=self._tenant,
                product=PRODUCT,
                subject_id=lead_id,
                event_type=move,
                payload={"applicant_id": application.applicant_id, **payload},
                occurred_at=when.get("occurred_at"),
                event_id=when.get("event_id"),
            )
            if not self._is_recorded(event):
                application.check(move)
                self._change(move, {**key, **columns})
                self._keep_directory(move, application, columns)
            return outbox.append_many(self._conn, [event])[
                0
            ]  # once recorded it only says whether this is the same

    def _change(self, move: Move, values: Mapping[str, object]) -> None:
        statement = move.name.lower()
        if statement in _queries and move is not Move.START:
            self._conn.execute(_queries[statement], values)
        elif move in BECOMES:
            self._conn.execute(_queries["move"], {**values, "state": BECOMES[move]})

    def _keep_directory(self, move: Move, application: Application, columns: Mapping[str, object]) -> None:
        """What the move says of people, for whoever is told because of it."""
        match move:
            case Move.START:
                role, user = "applicant", application.applicant_id
            case Move.ASSIGN_ADVISOR:
                role, user = "advisor", str(columns["advisor"])
            case Move.VERIFY_PHONE:
                directory.set_phone(self._conn, self._tenant, application.applicant_id, str(columns["phone"]))
                return
            case _:
                return
        directory.assign(self._conn, self._tenant, PRODUCT, application.lead_id, role, user)
        if isinstance(contact := columns["contact"], Contact):
            directory.put_contact(self._conn, self._tenant, user, contact)

    def _narrow(self) -> None:
        self._conn.execute(_queries["narrow"], {"tenant": self._tenant})

    def _load(self, statement: str, lead_id: str) -> Application:
        row = self._conn.execute(_queries[statement], {"tenant": self._tenant, "lead": lead_id}).fetchone()
        if row is None:
            raise UnknownLeadError(f"tenant {self._tenant} has no application of lead {lead_id}")
        applicant_id, state, *rest = row
        return Application(lead_id, applicant_id, State(state), *rest)

    def _is_recorded(self, event: outbox.NewEvent) -> bool:
        """Whether this request was done before; its row must not change twice."""
        if event.event_id is None:
            return False
        values = {"tenant": self._tenant, "event_id": event.parameters()["event_id"]}
        return self._conn.execute(_queries["recorded"], values).fetchone() is not None
