"""A loan application: its states and which move is allowed in which.

open ──withdraw──► withdrawn ──reapply──► open
open ──sanction──► sanctioned ──disburse──► disbursed
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LoanError(Exception):
    """The loan service refuses; nothing was written. The message says what and why."""


class UnknownLeadError(LoanError):
    """The tenant has no application of this lead."""


class InvalidMoveError(LoanError):
    """The application's state does not allow this."""


class State(StrEnum):
    """Where an application stands."""

    OPEN = "open"
    WITHDRAWN = "withdrawn"
    SANCTIONED = "sanctioned"
    DISBURSED = "disbursed"


class Move(StrEnum):
    """What can happen to an application; the value is the event type that says so."""

    START = "loans.initiated"
    VERIFY_PHONE = "loans.phone_verified"
    COMPLETE_CREDIT_CHECK = "loans.credit_check_done"
    EXPLORE_SAVINGS = "loans.savings_explored"
    VIEW_OFFERS = "loans.offers_viewed"
    SUBMIT_OFFER = "loans.offer_submitted"
    WITHDRAW = "loans.withdrawn"
    REAPPLY = "loans.reapplied"
    SANCTION = "loans.sanctioned"
    DISBURSE = "loans.disbursed"
    ASSIGN_ADVISOR = "loans.advisor_assigned"


ALLOWED: dict[Move, frozenset[State]] = {
    Move.REAPPLY: frozenset({State.WITHDRAWN}),
    Move.SANCTION: frozenset({State.OPEN}),
    Move.DISBURSE: frozenset({State.SANCTIONED}),
    Move.ASSIGN_ADVISOR: frozenset({State.OPEN, State.SANCTIONED}),
}
"""Moves that are not the applicant's own steps; those need an open application."""

BECOMES: dict[Move, State] = {
    Move.WITHDRAW: State.WITHDRAWN,
    Move.REAPPLY: State.OPEN,
    Move.SANCTION: State.SANCTIONED,
    Move.DISBURSE: State.DISBURSED,
}
"""The state a move leads to; the others leave it."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application as it stands."""

    lead_id: str
    applicant_id: str
    state: State
    attempt: int
    phone_verified: bool
    credit_score: int | None
    offer_id: str | None
    amount: int | None
    advisor_id: str | None

    def check(self, move: Move) -> None:
        """Raise `InvalidMoveError` unless the state allows the move.

        Steps may come again and in any order: people go back, and telling them is the platform's business.
        """
        allowed = ALLOWED.get(move, frozenset({State.OPEN}))
        if self.state not in allowed:
            needs = " or ".join(sorted(allowed))
            raise InvalidMoveError(
                f"{move.name.lower()}: application {self.lead_id} is {self.state}, needs {needs}"
            )
        if move is Move.SANCTION and self.offer_id is None:
            raise InvalidMoveError(f"sanction: application {self.lead_id} has submitted no offer yet")
