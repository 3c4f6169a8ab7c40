"""Who is told, and on which channels: rules by their names, and what holds for any directory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.preparation.decide import distinct, prepare, want
from consumers.preparation.model import (
    NOBODY_KNOWN,
    Directory,
    Holder,
    Intent,
    Person,
    Prepared,
    UserKey,
    Wanted,
)
from schemas.ids import id_time, id_version
from schemas.products.audience import Channel
from schemas.products.model import Product
from tests.unit.consumers.events import event

EVENT = event("initiated")
ANA = Person("ana", True, "pt-BR", "America/Sao_Paulo", has_email=True, has_phone=True)
BEN = Person("ben", True, "en", "UTC", has_email=True, has_phone=False)


def product(*audiences: Mapping[str, object], **kind: object) -> Product:
    return Product.model_validate(
        {
            "product": "loans",
            "subject": "lead",
            "default_locale": "de",
            "kinds": {"loans.told": {"audiences": list(audiences), **kind}},
        }
    )


def intent(**changes: object) -> Intent:
    return Intent.of(EVENT, "loans.told", "events.loans")._replace(**changes)  # type: ignore[arg-type]


def holding(**roles: Person) -> Directory:
    return Directory({Holder("acme", "L-1", role): person for role, person in roles.items()})


def knowing(*people: Person) -> Directory:
    return Directory(people={UserKey("acme", person.user_id): person for person in people})


def told(prepared: Prepared) -> dict[str, dict[str, str]]:
    """By user the channels, each with the role that it is told in."""
    return {
        each.user_id: {delivery.channel.value: delivery.role for delivery in each.deliveries}
        for each in prepared.notifications
    }


APPLICANT = {"who": "applicant", "channels": ["whatsapp", "email"]}
ADVISOR = {"who": "advisor", "channels": ["inapp", "email"]}


def test_applicant_and_advisor_each_on_their_channels() -> None:
    prepared = prepare(product(APPLICANT, ADVISOR), intent(), holding(applicant=ANA, advisor=BEN))
    assert told(prepared) == {
        "ana": {"whatsapp": "applicant", "email": "applicant"},
        "ben": {"inapp": "advisor", "email": "advisor"},
    }
    assert [(each.locale, each.zone) for each in prepared.notifications] == [
        ("pt-BR", "America/Sao_Paulo"),
        ("en", "UTC"),
    ]


def test_no_advisor_assigned_and_the_applicants_part_still_goes() -> None:
    assert set(told(prepare(product(APPLICANT, ADVISOR), intent(), holding(applicant=ANA)))) == {"ana"}


def test_an_inactive_person_is_not_told() -> None:
    prepared = prepare(product(APPLICANT), intent(), holding(applicant=ANA._replace(is_active=False)))
    assert prepared.is_for_nobody


def test_a_channel_without_an_address_is_left_out() -> None:
    prepared = prepare(product(APPLICANT), intent(), holding(applicant=BEN))
    assert told(prepared) == {"ben": {"email": "applicant"}}


def test_somebody_whom_no_channel_reaches_is_nobody() -> None:
    unreached = BEN._replace(has_email=False)
    assert prepare(product(APPLICANT), intent(), holding(applicant=unreached)).is_for_nobody
    assert prepare(product(APPLICANT), intent(), NOBODY_KNOWN).is_for_nobody


def test_somebody_with_two_roles_is_told_once_per_channel_in_the_first() -> None:
    prepared = prepare(product(APPLICANT, ADVISOR), intent(), holding(applicant=ANA, advisor=ANA))
    assert told(prepared) == {"ana": {"whatsapp": "applicant", "email": "applicant", "inapp": "advisor"}}
    assert [each.role for each in prepared.notifications] == ["applicant"]


def test_a_user_whom_the_payload_names() -> None:
    audience = {"who": "payload.owner_id", "channels": ["inapp"]}
    prepared = prepare(product(audience), intent(payload={"owner_id": "ana"}), knowing(ANA))
    assert told(prepared) == {"ana": {"inapp": "payload.owner_id"}}


@pytest.mark.parametrize("value", [None, 5, "", "a:b", "x" * 129, ["ana"]])
def test_a_payload_that_names_nobody(value: object) -> None:
    audience = {"who": "payload.owner_id", "channels": ["inapp"]}
    for payload in ({"owner_id": value}, {}):
        assert prepare(product(audience), intent(payload=payload), knowing(ANA)).is_for_nobody
        wanted = Wanted()
        want(wanted, product(audience).kinds["loans.told"].audiences, "acme", "L-1", payload)
        assert wanted == Wanted()


def test_users_and_addresses_of_the_product() -> None:
    prepared = prepare(
        product(
            {"who": {"users": ["ben", "unknown"]}, "channels": ["email"]},
            {
                "who": {"addresses": ["ops@example.org", "+4930123456", "#alerts"]},
                "channels": ["email", "whatsapp", "inapp"],
            },
        ),
        intent(),
        knowing(BEN),
    )
    assert told(prepared) == {
        "ben": {"email": "user"},
        "ops@example.org": {"email": "address"},
        "+4930123456": {"whatsapp": "address"},
    }
    assert {each.locale for each in prepared.notifications if each.role == "address"} == {"de"}


def test_channels_that_this_installation_has_not_reach_nobody() -> None:
    audience = {"who": "applicant", "channels": ["push", "sms", "webhook", "chat"]}
    assert prepare(product(audience), intent(), holding(applicant=ANA)).is_for_nobody


def test_it_expires_counted_from_what_the_intent_says() -> None:
    moment = EVENT.occurred_at + timedelta(days=1)
    kind = product(APPLICANT, expires_after="15m")
    assert prepare(kind, intent(valid_from=moment), NOBODY_KNOWN).expires_at == moment + timedelta(minutes=15)
    assert prepare(product(APPLICANT), intent(), NOBODY_KNOWN).expires_at is None


def test_only_what_the_audiences_name_is_looked_up() -> None:
    kind = product(
        APPLICANT,
        {"who": "applicant", "channels": ["inapp"]},
        {"who": {"users": ["ben"]}, "channels": ["email"]},
        {"who": "payload.owner_id", "channels": ["inapp"]},
        {"who": {"addresses": ["ops@example.org"]}, "channels": ["email"]},
    ).kinds["loans.told"]
    wanted = Wanted()
    want(wanted, distinct([kind]), "acme", "L-1", {"owner_id": "ana"})
    assert wanted.holders == {Holder("acme", "L-1", "applicant")}
    assert wanted.people == {UserKey("acme", "ben"), UserKey("acme", "ana")}
    assert len(distinct([kind, kind])) == 4


def test_ids_derive_from_the_cause() -> None:
    kind, directory = product(APPLICANT, ADVISOR), holding(applicant=ANA, advisor=BEN)
    prepared = prepare(kind, intent(), directory)
    assert prepare(kind, intent(), directory) == prepared
    ids = [prepared.intent.intent_id]
    for each in prepared.notifications:
        ids += [each.notification_id, *(delivery.delivery_id for delivery in each.deliveries)]
    assert len(set(ids)) == len(ids) == 7
    assert {id_version(each) for each in ids} == {8}
    assert {id_time(each) for each in ids} == {id_time(EVENT.event_id)}
    other = prepare(kind, intent(tenant_id="bank"), Directory({Holder("bank", "L-1", "applicant"): ANA}))
    assert not {each.notification_id for each in other.notifications} & set(ids)


WHO = st.sampled_from(
    [
        "applicant",
        "advisor",
        "payload.owner_id",
        {"users": ["ana", "ben"]},
        {"addresses": ["ops@example.org", "+4930123456"]},
    ]
)
AUDIENCES = st.lists(
    st.fixed_dictionaries(
        {
            "who": WHO,
            "channels": st.lists(
                st.sampled_from([channel.value for channel in Channel]), min_size=1, unique=True
            ),
        }
    ),
    min_size=1,
    max_size=5,
)
PEOPLE = st.builds(
    Person,
    st.sampled_from(["ana", "ben", "cleo"]),
    st.booleans(),
    st.just("en"),
    st.just("UTC"),
    st.booleans(),
    st.booleans(),
)
DIRECTORIES = st.builds(
    lambda holders, people: Directory(
        {Holder("acme", "L-1", role): person for role, person in holders.items()},
        {UserKey("acme", user): person._replace(user_id=user) for user, person in people.items()},
    ),
    st.dictionaries(st.sampled_from(["applicant", "advisor"]), PEOPLE),
    st.dictionaries(st.sampled_from(["ana", "ben"]), PEOPLE),
)


@given(AUDIENCES, DIRECTORIES, st.sampled_from([{}, {"owner_id": "ana"}, {"owner_id": None}]))
def test_whatever_the_directory_says(
    audiences: list[dict[str, object]], directory: Directory, payload: dict[str, object]
) -> None:
    kind = product(*audiences)
    prepared = prepare(kind, intent(payload=payload), directory)
    channels = [(n.user_id, d.channel) for n in prepared.notifications for d in n.deliveries]
    assert len(set(channels)) == len(channels), "once per person and channel"
    assert all(each.deliveries for each in prepared.notifications)
    assert len({each.user_id for each in prepared.notifications}) == len(prepared.notifications)
    assert {channel for _, channel in channels} <= kind.kinds["loans.told"].channels
    assert {channel for _, channel in channels} <= {Channel.INAPP, Channel.EMAIL, Channel.WHATSAPP}
    wanted = Wanted()
    want(wanted, kind.kinds["loans.told"].audiences, "acme", "L-1", payload)
    asked = Directory(
        {key: person for key, person in directory.holders.items() if key in wanted.holders},
        {key: person for key, person in directory.people.items() if key in wanted.people},
    )
    assert prepare(kind, intent(payload=payload), asked) == prepared, "what is looked up is all that counts"
