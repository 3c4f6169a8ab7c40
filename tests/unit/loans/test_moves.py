"""Which move an application allows in which state."""

from __future__ import annotations

import pytest

from producers.products.loans.application import BECOMES, Application, InvalidMoveError, Move, State

STEPS = [
    Move.VERIFY_PHONE,
    Move.COMPLETE_CREDIT_CHECK,
    Move.EXPLORE_SAVINGS,
    Move.VIEW_OFFERS,
    Move.SUBMIT_OFFER,
]


def application(state: State, *, offer_id: str | None = "O-1") -> Application:
    return Application("L-1", "u-1", state, 1, False, None, offer_id, None, None)


@pytest.mark.parametrize("move", [Move.START, *STEPS, Move.WITHDRAW])
def test_the_applicants_own_steps_need_an_open_application(move: Move) -> None:
    application(State.OPEN).check(move)
    for state in set(State) - {State.OPEN}:
        with pytest.raises(InvalidMoveError, match="needs open"):
            application(state).check(move)


@pytest.mark.parametrize(
    ("move", "states"),
    [
        (Move.REAPPLY, {State.WITHDRAWN}),
        (Move.SANCTION, {State.OPEN}),
        (Move.DISBURSE, {State.SANCTIONED}),
        (Move.ASSIGN_ADVISOR, {State.OPEN, State.SANCTIONED}),
    ],
)
def test_other_moves_have_their_states(move: Move, states: set[State]) -> None:
    for state in State:
        if state in states:
            application(state).check(move)
        else:
            with pytest.raises(InvalidMoveError, match=f"is {state}"):
                application(state).check(move)


def test_only_a_submitted_offer_is_sanctioned() -> None:
    with pytest.raises(InvalidMoveError, match="no offer"):
        application(State.OPEN, offer_id=None).check(Move.SANCTION)


def test_every_state_but_the_first_is_led_to() -> None:
    assert set(BECOMES.values()) == set(State)
