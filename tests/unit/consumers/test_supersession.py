"""The rules of supersession, each by its name. Where the article and the design differ, the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from connectors.registry import load_catalogue
from consumers.preparation.model import Directory, Holder, Person
from consumers.supersession.decide import Known, Lead, LeadKey, Live, Nudge, Superseded, decide
from schemas.envelope import Event, EventType
from schemas.ids import derived_id
from schemas.platform_events import NUDGE_DUE
from schemas.products.model import Product, UnknownStepError
from schemas.states import NOBODY, DecisionOutcome, DropReason, NudgeReason, NudgeState
from tests.unit.consumers.events import TEN, event

LOANS = load_catalogue().product("loans").product
KEY = LeadKey("acme", "L-1")


def play(*events: Event, product: Product = LOANS, leads: dict[LeadKey, Lead] | None = None) -> Superseded:
    return decide(product, leads or {}, events)


def outcomes(batch: Superseded) -> list[tuple[DecisionOutcome, str | None]]:
    return [(decision.outcome, decision.reason) for decision in batch.decisions]


def live(batch: Superseded) -> list[Nudge]:
    return [nudge for nudge in batch.armed.values() if nudge.state.is_live]


def without(step: str, **changes: object) -> Product:
    """The loans product with one step changed, or removed when nothing is said."""
    assert LOANS.journey is not None
    steps = [
        s.model_copy(update=changes) if s.on == step else s
        for s in LOANS.journey.steps
        if s.on != step or changes
    ]
    data = LOANS.model_dump(by_alias=True)
    data["journey"]["steps"] = [s.model_dump() for s in steps]
    return Product.model_validate(data)


def test_the_articles_two_timers_leave_one_nudge_for_the_credit_check() -> None:
    batch = play(event("initiated", 0), event("credit_check_done", 4))
    first, second = batch.armed.values()
    assert (first.state, first.reason) == (NudgeState.CANCELLED, NudgeReason.SUPERSEDED)
    assert first.superseded_by == second.nudge_id
    assert (second.kind, second.state) == ("loans.explore_savings", NudgeState.SCHEDULED)
    assert second.due_at == TEN + timedelta(minutes=19)


def test_a_late_event_is_not_further_and_drops() -> None:
    batch = play(event("credit_check_done", 4), event("initiated", 0))
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)
    assert [nudge.kind for nudge in live(batch)] == ["loans.explore_savings"]


def test_the_same_step_again_is_not_further() -> None:
    batch = play(event("initiated", 0), event("initiated", 1))
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)
    assert len(batch.armed) == 1


def test_a_late_event_does_not_rearm_after_the_later_nudge_was_sent() -> None:
    """The article compares with the live nudge only: with none live it would arm the earlier step again."""
    sent = Lead(reached=("loans.initiated", "loans.credit_check_done"), live=None)
    batch = play(event("phone_verified", 2), leads={KEY: sent})
    assert outcomes(batch) == [(DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)]
    assert not batch.armed


def test_a_forward_step_cancels_the_live_nudge_of_an_earlier_batch() -> None:
    old = play(event("initiated", 0))
    (armed,) = live(old)
    step = event("offers_viewed", 5)
    batch = play(step, leads=old.leads)
    (gone,) = batch.cancelled
    (new,) = live(batch)
    assert (gone.nudge_id, gone.cancelled_by, gone.superseded_by) == (
        armed.nudge_id,
        step.event_id,
        new.nudge_id,
    )
    assert batch.decisions[0].cancelled_nudge_id == armed.nudge_id
    assert batch.decisions[0].nudge_id == new.nudge_id


@pytest.mark.parametrize(("occurred", "recorded", "due"), [(0, 7, 30), (7, 0, 30), (3, 3, 33)])
def test_due_counts_from_the_earlier_of_both_clocks(occurred: float, recorded: float, due: float) -> None:
    (nudge,) = live(play(event("initiated", occurred, recorded=recorded)))
    assert nudge.due_at == TEN + timedelta(minutes=due)


def test_an_immediate_step_tears_down_and_arms_nothing() -> None:
    batch = play(event("offers_viewed", 0), event("offer_submitted", 1))
    assert outcomes(batch)[1] == (DecisionOutcome.IMMEDIATE, NOBODY)
    (gone,) = batch.armed.values()
    assert (gone.state, gone.superseded_by, gone.reason) == (
        NudgeState.CANCELLED,
        None,
        NudgeReason.SUPERSEDED,
    )
    assert batch.leads[KEY].live is None


def test_what_an_immediate_step_says_is_not_superseded_later() -> None:
    batch = play(event("offer_submitted", 0), event("offers_viewed", 1))
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)
    assert not batch.cancelled


@pytest.mark.parametrize("name", ["sanctioned", "disbursed", "advisor_assigned"])
def test_lifecycle_events_cancel_nothing(name: str) -> None:
    batch = play(event("initiated", 0), event(name, 1))
    assert outcomes(batch)[1] == (DecisionOutcome.LIFECYCLE, None)
    assert len(live(batch)) == 1


def test_an_end_event_cancels_without_a_successor() -> None:
    batch = play(event("initiated", 0), event("withdrawn", 1))
    (gone,) = batch.armed.values()
    assert (gone.state, gone.reason, gone.superseded_by) == (NudgeState.CANCELLED, NudgeReason.ENDED, None)
    assert batch.leads[KEY].ended_at == TEN + timedelta(minutes=1)


@pytest.mark.parametrize("name", ["initiated", "offers_viewed", "withdrawn"])
@pytest.mark.parametrize("minute", [0, 9])
def test_events_of_an_ended_epoch_drop(name: str, minute: float) -> None:
    batch = play(event("withdrawn", 5), event(name, minute))
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.ENDED)


def test_a_restart_begins_a_new_epoch_in_which_early_steps_count_again() -> None:
    batch = play(
        event("offers_viewed", 0), event("withdrawn", 1), event("reapplied", 2), event("initiated", 3)
    )
    assert [outcome for outcome, _ in outcomes(batch)] == ["scheduled", "ended", "restarted", "scheduled"]
    assert batch.leads[KEY].reached == ("loans.initiated",)
    assert [nudge.step for nudge in live(batch)] == ["loans.initiated"]


def test_a_restart_cancels_what_is_live() -> None:
    batch = play(event("initiated", 0), event("reapplied", 1))
    (gone,) = batch.armed.values()
    assert (gone.state, gone.reason) == (NudgeState.CANCELLED, NudgeReason.RESTARTED)


@pytest.mark.parametrize("name", ["offers_viewed", "withdrawn", "reapplied"])
def test_events_from_before_the_restart_drop(name: str) -> None:
    batch = play(event("reapplied", 5), event(name, 4))
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.BEFORE_RESTART)
    assert batch.leads[KEY].epoch_began_at == TEN + timedelta(minutes=5)


def test_a_step_inserted_in_the_list_reranks_history_for_free() -> None:
    """Reached names are looked up in today's list: history that knew no step between still stands right."""
    before = without("loans.phone_verified")
    reached = decide(before, {}, [event("credit_check_done", 0)]).leads
    batch = play(event("phone_verified", 1), leads=reached)
    assert outcomes(batch) == [(DecisionOutcome.DROPPED, DropReason.NOT_FURTHER)]


def test_a_retired_step_counts_for_rank_and_says_nothing() -> None:
    product = without("loans.credit_check_done", retired=True)
    batch = play(event("initiated", 0), event("credit_check_done", 1), product=product)
    assert outcomes(batch)[1] == (DecisionOutcome.ADVANCED, None)
    assert not live(batch)
    assert (
        play(event("phone_verified", 2), leads=batch.leads, product=product).decisions[0].reason
        == "not_further"
    )


def test_a_step_that_left_the_list_is_an_error_that_names_it() -> None:
    product = without("loans.credit_check_done")
    with pytest.raises(UnknownStepError, match=r"loans\.credit_check_done"):
        play(
            event("offers_viewed", 1),
            leads={KEY: Lead(reached=("loans.credit_check_done",))},
            product=product,
        )


def test_deciding_again_gives_the_same_ids() -> None:
    events: Sequence[Event] = (event("initiated", 0), event("credit_check_done", 4))
    assert play(*events).armed == play(*events).armed


def test_leads_of_different_tenants_do_not_meet() -> None:
    batch = play(event("offers_viewed", 0, tenant="acme"), event("initiated", 1, tenant="bank"))
    assert len(live(batch)) == 2


ANA = Person("ana", True, "en", "UTC", has_email=True, has_phone=True)
KNOWN = Directory({Holder("acme", "L-1", "applicant"): ANA})
NUDGE_ID = derived_id("019a0000-0000-7000-8000-00000000000a", "acme", "nudge", "k")
PENDING = Live("loans.explore_savings", "019a0000-0000-7000-8000-00000000000a", TEN, is_pending=True)
WAITING = Lead(reached=("loans.credit_check_done",), live=NUDGE_ID)


def due(nudge_id: str = NUDGE_ID) -> Event:
    return event("initiated")._replace(event_type=EventType(NUDGE_DUE), payload={"nudge_id": nudge_id})


def fire(
    *events: Event,
    live: Live | None = PENDING,
    directory: Directory = KNOWN,
    lead: Lead = WAITING,
    product: Product = LOANS,
) -> Superseded:
    known = Known({} if live is None else {NUDGE_ID: live}, directory)
    return decide(product, {KEY: lead}, events, known)


def test_an_immediate_step_is_told_at_once() -> None:
    step = event("offer_submitted", 1, recorded=3)
    batch = decide(LOANS, {}, [step], Known(directory=KNOWN))
    assert outcomes(batch) == [(DecisionOutcome.IMMEDIATE, None)]
    (prepared,) = batch.prepared
    assert (prepared.intent.kind, prepared.intent.event_id) == ("loans.offer_received", step.event_id)
    assert (prepared.intent.nudge_id, prepared.intent.lane) == (None, "events.loans")
    assert prepared.intent.valid_from == TEN + timedelta(minutes=1)


def test_an_immediate_step_that_is_not_further_tells_nothing() -> None:
    batch = decide(
        LOANS,
        {KEY: Lead(reached=("loans.offer_submitted",))},
        [event("offer_submitted")],
        Known(directory=KNOWN),
    )
    assert not batch.prepared


def test_a_due_nudge_is_told_because_of_the_event_that_armed_it() -> None:
    batch = fire(due())
    assert outcomes(batch) == [(DecisionOutcome.FIRED, None)]
    assert batch.decisions[0].nudge_id == NUDGE_ID
    (prepared,) = batch.prepared
    assert prepared.intent[2:4] == (PENDING.kind, PENDING.event_id)
    assert (prepared.intent.nudge_id, prepared.intent.lane) == (NUDGE_ID, "timers.loans")
    assert not batch.leads
    assert not batch.cancelled


@pytest.mark.parametrize(
    ("live", "lead"),
    [
        (None, WAITING),
        (PENDING, Lead(reached=("loans.offers_viewed",), live="019a0000-0000-8000-8000-00000000000b")),
        (PENDING, Lead(reached=("loans.offers_viewed",))),
        (PENDING._replace(is_pending=False), WAITING),
    ],
)
def test_a_due_nudge_that_no_longer_stands_is_dropped(live: Live | None, lead: Lead) -> None:
    batch = fire(due(), live=live, lead=lead)
    assert outcomes(batch) == [(DecisionOutcome.DROPPED, DropReason.SUPERSEDED)]
    assert not batch.prepared


def test_a_step_before_it_in_the_batch_supersedes_a_due_nudge() -> None:
    batch = fire(event("offers_viewed", 1), due())
    assert outcomes(batch)[1] == (DecisionOutcome.DROPPED, DropReason.SUPERSEDED)
    assert not batch.prepared


def test_a_step_behind_it_in_the_batch_cancels_what_was_told() -> None:
    """Its deliveries are queued, and end at their claim: the nudge no longer stands."""
    batch = fire(due(), event("offers_viewed", 1))
    assert [outcome for outcome, _ in outcomes(batch)] == ["fired", "scheduled"]
    assert [(gone.nudge_id, gone.reason) for gone in batch.cancelled] == [(NUDGE_ID, NudgeReason.SUPERSEDED)]


def test_a_due_nudge_of_a_kind_that_the_product_gave_up_ends_and_says_so() -> None:
    kinds = {name: kind for name, kind in LOANS.kinds.items() if name != "loans.explore_savings"}
    timer = due()
    batch = fire(timer, product=LOANS.model_copy(update={"kinds": kinds}))
    assert outcomes(batch) == [(DecisionOutcome.CANCELLED, NudgeReason.KIND_REMOVED)]
    assert [(gone.nudge_id, gone.reason) for gone in batch.cancelled] == [
        (NUDGE_ID, NudgeReason.KIND_REMOVED)
    ]
    assert batch.leads[KEY].live is None
    assert not batch.prepared


def test_a_due_nudge_for_nobody_ends_and_the_next_step_arms_as_ever() -> None:
    timer = due()
    batch = fire(timer, event("offers_viewed", 1), directory=Directory())
    assert outcomes(batch)[0] == (DecisionOutcome.CANCELLED, NOBODY)
    assert [(gone.nudge_id, gone.cancelled_by, gone.reason) for gone in batch.cancelled] == [
        (NUDGE_ID, timer.event_id, NudgeReason.NOBODY)
    ]
    assert batch.decisions[0].cancelled_nudge_id == NUDGE_ID
    assert len(live(batch)) == 1
    assert batch.decisions[1].cancelled_nudge_id is None
