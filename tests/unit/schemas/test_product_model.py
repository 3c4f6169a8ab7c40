"""What a product may say of itself, and what follows from it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.products.audience import Addresses, Audience, Channel, Users
from schemas.products.catalogue import UnknownEventTypeError, UnknownProductError
from schemas.products.digest import Digest
from schemas.products.model import Journey, Kind, Product, Role, Step, UnknownStepError
from tests.unit.schemas.contracts import catalogue_of, contract_of, field

NAMES = [f"cards.step_{number}" for number in range(5)]


def journey(*retired: str) -> Journey:
    steps = tuple(
        Step(on=name, nudge="cards.hurry", after=timedelta(minutes=5), retired=name in retired)
        for name in NAMES
    )
    return Journey(
        steps=steps, ends_on=frozenset({"cards.closed"}), restarts_on=frozenset({"cards.reopened"})
    )


def kind(**more: Any) -> dict[str, Any]:
    return {"audiences": [{"who": "applicant", "channels": ["email", "inapp"]}], **more}


def product(**more: Any) -> Product:
    return Product.model_validate({"product": "cards", "subject": "card", **more})


def test_a_steps_rank_is_its_place_retired_or_not() -> None:
    assert [journey(NAMES[2]).rank(name) for name in NAMES] == [0, 1, 2, 3, 4]
    assert journey(NAMES[2]).step(NAMES[2]).retired


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES)))
def test_further_is_strictly_further_than_all_that_was_reached(name: str, reached: list[str]) -> None:
    expected = all(NAMES.index(name) > NAMES.index(other) for other in reached)
    assert journey().is_further(name, reached) is expected


@pytest.mark.parametrize("ask", [lambda j: j.rank("cards.gone"), lambda j: j.step("cards.gone")])
def test_a_step_that_is_gone_must_stay_as_retired(ask: Any) -> None:
    with pytest.raises(UnknownStepError, match="stays as `retired: true`") as caught:
        ask(journey())
    assert caught.value.step == "cards.gone"


@pytest.mark.parametrize(
    ("name", "reached"),
    [("cards.gone", []), (NAMES[1], ["cards.gone"]), (NAMES[1], [NAMES[4], "cards.gone"])],
)
def test_an_unknown_step_is_told_wherever_it_stands(name: str, reached: list[str]) -> None:
    with pytest.raises(UnknownStepError) as caught:
        journey().is_further(name, reached)
    assert caught.value.step == "cards.gone"


def test_a_step_without_delay_is_immediate() -> None:
    assert Step.model_validate({"on": "cards.a", "nudge": "cards.b", "after": "0s"}).is_immediate
    assert not Step.model_validate({"on": "cards.a", "nudge": "cards.b", "after": "1s"}).is_immediate


def test_an_event_type_has_the_role_it_is_named_for() -> None:
    found = product(
        journey=journey(), kinds={"cards.blocked": kind(on="cards.blocked"), "cards.hurry": kind()}
    )
    assert {
        name: found.role_of(name) for name in (*NAMES[:1], "cards.closed", "cards.reopened", "cards.blocked")
    } == {
        NAMES[0]: Role.STEP,
        "cards.closed": Role.END,
        "cards.reopened": Role.RESTART,
        "cards.blocked": Role.LIFECYCLE,
    }
    assert found.role_of("cards.viewed") is Role.RULE_INPUT
    assert found.events_topic == "events.cards"


def test_two_kinds_of_one_event_are_one_role() -> None:
    found = product(kinds={"cards.tell": kind(on="cards.blocked"), "cards.warn": kind(on="cards.blocked")})
    assert list(found.claims()) == [("cards.blocked", Role.LIFECYCLE)]


def test_a_kinds_channels_are_those_of_all_its_audiences() -> None:
    found = Kind.model_validate(
        {
            "audiences": [
                {"who": "applicant", "channels": ["sms"]},
                {"who": "advisor", "channels": ["sms", "inapp"]},
            ]
        }
    )
    assert found.channels == {Channel.SMS, Channel.INAPP}


@pytest.mark.parametrize(
    ("who", "form", "payload_field"),
    [
        ("applicant", str, None),
        ("payload.owner_id", str, "owner_id"),
        ({"users": ["u-1", "u-2"]}, Users, None),
        ({"addresses": ["ops@example.com"]}, Addresses, None),
    ],
)
def test_who_is_told(who: Any, form: type, payload_field: str | None) -> None:
    found = Audience.model_validate({"who": who, "channels": ["email"]})
    assert isinstance(found.who, form)
    assert found.payload_field == payload_field


@pytest.mark.parametrize(
    "who",
    [
        "everybody",
        "payload.",
        "payload.Owner",
        "",
        None,
        5,
        {},
        {"users": []},
        {"users": ["a:b"]},
        {"addresses": [""]},
        {"users": ["u"], "addresses": ["a"]},
    ],
)
def test_nobody_else_can_be_told(who: Any) -> None:
    with pytest.raises(ValidationError):
        Audience.model_validate({"who": who, "channels": ["email"]})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"audiences": []}, "at least 1 item"),
        ({"expires_after": "0s"}, "0 would never send it"),
        ({"required": True, "digest": {"email": {"every": "1h"}}}, "never collected"),
        ({"digest": {"inapp": {"every": "1h"}}}, "in-app is shown at once"),
        ({"digest": {"sms": {"every": "1h"}}}, "no audience is told on sms"),
        ({"digest": {"email": {"every": "1h", "at": "09:00"}}}, "either `every` so often or `at`"),
        ({"digest": {"email": {}}}, "either `every` so often or `at`"),
        ({"digest": {"email": {"every": "1h", "on": "monday"}}}, "`on` goes with `at`"),
        ({"digest": {"email": {"every": "9s"}}}, "at least 10s"),
        ({"digest": {"email": {"at": "24:00"}}}, "match pattern"),
        ({"digest": {"email": {"at": "9:00"}}}, "match pattern"),
        ({"category": "Not A Name"}, "match pattern"),
        ({"channel": "email"}, "Extra inputs"),
    ],
)
def test_a_kind_that_contradicts_itself(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Kind.model_validate(kind(**more))


def test_a_digest_at_a_wall_time_on_a_day() -> None:
    found = Digest.model_validate({"at": "08:00", "on": "monday"})
    assert (found.at, found.on, found.every, found.max_items) == ("08:00", "monday", None, 20)


@pytest.mark.parametrize(
    "more",
    [
        {"product": "Cards"},
        {"product": "x" * 41},
        {"subject": ""},
        {"default_locale": "english"},
        {"journey": {"steps": []}},
        {"kinds": {"hurry": kind()}},
        {"confluent_ids": {7: "cards.ordered"}},
        {"confluent_ids": {7: "cards.ordered@0"}},
        {"owner": "somebody"},
    ],
)
def test_a_product_that_is_none(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        product(**more)


def test_a_product_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        product().subject = "order"


def test_the_catalogue_names_what_there_is() -> None:
    catalogue = catalogue_of(contract_of(field("owner_id", "string")))
    assert catalogue.product("cards") is catalogue.of_topic("events.cards")
    assert catalogue.event("cards.ordered").event_type == "cards.ordered"
    assert catalogue.of_topic("timers.cards") is None
    with pytest.raises(UnknownProductError, match="no product 'loans' here; there are cards"):
        catalogue.product("loans")
    with pytest.raises(UnknownEventTypeError, match=r"'cards\.orderd'; did you mean cards\.ordered\?"):
        catalogue.event("cards.orderd")
    with pytest.raises(UnknownEventTypeError, match=r"'x'$"):
        catalogue.event("x")
