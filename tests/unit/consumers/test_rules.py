"""Lifecycle kinds: told when their event happens, whatever the journey does."""

from __future__ import annotations

import pytest

from connectors.registry import load_catalogue
from consumers.preparation.model import NOBODY_KNOWN, Directory, Holder, Person
from consumers.rules.decide import decide
from schemas.products.model import Product
from schemas.states import NOBODY, DecisionOutcome
from tests.unit.consumers.events import event

LOANS = load_catalogue().product("loans").product
ANA = Person("ana", True, "en", "UTC", has_email=True, has_phone=True)
KNOWN = Directory({Holder("acme", "L-1", "applicant"): ANA})


@pytest.mark.parametrize("name", ["sanctioned", "disbursed", "advisor_assigned"])
def test_a_lifecycle_event_is_told(name: str) -> None:
    batch = decide(LOANS, KNOWN, [event(name)])
    assert [(d.outcome, d.reason) for d in batch.decisions] == [(DecisionOutcome.FIRED, None)]
    (prepared,) = batch.prepared
    assert (prepared.intent.kind, prepared.intent.nudge_id) == (f"loans.{name}", None)
    assert prepared.intent.lane == "events.loans"


@pytest.mark.parametrize("name", ["initiated", "offer_submitted", "withdrawn", "reapplied", "unheard_of"])
def test_every_other_event_is_ignored(name: str) -> None:
    batch = decide(LOANS, KNOWN, [event(name)])
    assert [(d.outcome, d.reason) for d in batch.decisions] == [(DecisionOutcome.IGNORED, None)]
    assert not batch.prepared


def test_nobody_to_tell_is_a_decision() -> None:
    batch = decide(LOANS, NOBODY_KNOWN, [event("sanctioned")])
    assert [(d.outcome, d.reason) for d in batch.decisions] == [(DecisionOutcome.FIRED, NOBODY)]


def test_one_event_may_fire_several_kinds_and_one_recipient_is_enough() -> None:
    audiences = [{"who": "applicant", "channels": ["email"]}]
    product = Product.model_validate(
        {
            "product": "loans",
            "subject": "lead",
            "kinds": {
                "loans.b": {"on": "loans.sanctioned", "audiences": audiences},
                "loans.a": {
                    "on": "loans.sanctioned",
                    "audiences": [{"who": "advisor", "channels": ["inapp"]}],
                },
            },
        }
    )
    batch = decide(product, KNOWN, [event("sanctioned"), event("sanctioned", subject="L-2")])
    assert [each.intent.kind for each in batch.prepared] == ["loans.a", "loans.b", "loans.a", "loans.b"]
    assert [d.reason for d in batch.decisions] == [None, NOBODY]
