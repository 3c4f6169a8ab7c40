"""A record is an event, or it is refused with the one reason that says what is wrong."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.envelope import ContractError, Event, Identity, decode
from schemas.states import DeadReason
from tests.unit.schemas.contracts import catalogue_of, contract_of, field

ORDERED = contract_of(field("owner_id", "string"), field("amount", ["null", "long"], default=None))
CATALOGUE = catalogue_of(ORDERED)
TOPIC, KEY, BODY = "events.cards", b"acme:C-1", b'{"owner_id":"u-1","amount":5}'
EVENT_ID = "019a0000-0000-7000-8000-00000000000a"
HEADERS: dict[str, bytes | None] = {
    "ce_id": EVENT_ID.encode(),
    "ce_type": b"cards.ordered",
    "ce_source": b"cards",
    "ce_subject": b"C-1",
    "ce_time": b"2026-03-01T12:00:00.25+02:00",
    "ce_tenant": b"acme",
    "content-type": b"application/json",
    "recorded_at": b"2026-03-01T10:00:01Z",
    "traceparent": b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}


def read(
    *,
    topic: str = TOPIC,
    key: bytes | None = KEY,
    value: bytes | None = BODY,
    without: str = "",
    **headers: bytes | None,
) -> Event:
    named = {name.replace("content_type", "content-type"): value for name, value in headers.items()}
    found = {name: value for name, value in {**HEADERS, **named}.items() if name != without}
    return decode(topic, key, list(found.items()), value, catalogue=CATALOGUE)


def refused(**record: object) -> ContractError:
    with pytest.raises(ContractError) as caught:
        read(**record)  # type: ignore[arg-type]
    return caught.value


def test_a_record_is_its_event() -> None:
    assert read() == Event(
        event_id=EVENT_ID,  # type: ignore[arg-type]
        tenant_id="acme",  # type: ignore[arg-type]
        product="cards",  # type: ignore[arg-type]
        subject_id="C-1",  # type: ignore[arg-type]
        event_type="cards.ordered",  # type: ignore[arg-type]
        occurred_at=datetime(2026, 3, 1, 10, 0, 0, 250_000, tzinfo=UTC),
        recorded_at=datetime(2026, 3, 1, 10, 0, 1, tzinfo=UTC),
        payload={"owner_id": "u-1", "amount": 5},
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    assert read().occurred_at.tzinfo is UTC


def test_the_body_may_be_avro_whatever_content_type_says() -> None:
    body = ORDERED.avro_body({"owner_id": "u-1", "amount": 5})
    assert read(value=body, content_type=b"avro/binary") == read(value=body) == read()


@pytest.mark.parametrize("trace", [None, b"", b"\xff\xfe"])
def test_no_trace_context_or_a_broken_one_costs_no_event(trace: bytes | None) -> None:
    assert not read(traceparent=trace).traceparent
    assert read(without="traceparent").traceparent is None


def test_a_header_that_comes_twice_counts_with_its_last_value() -> None:
    headers = [("ce_subject", b"C-2"), *HEADERS.items()]
    assert decode(TOPIC, KEY, headers, BODY, catalogue=CATALOGUE) == read()


def test_a_subject_may_be_any_text_without_a_colon() -> None:
    subject = "Ä 名/#" * 25
    assert read(key=f"acme:{subject}".encode(), ce_subject=subject.encode()).subject_id == subject


REQUIRED = sorted(set(HEADERS) - {"traceparent"})


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_header_is_named(name: str) -> None:
    error = refused(without=name)
    assert error.reason is DeadReason.MISSING_HEADER
    assert f"header {name} is missing" in str(error)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_header_without_a_value_is_missing(name: str) -> None:
    error = refused(**{name.replace("-", "_"): None})
    assert (error.reason, f"header {name} is missing" in str(error)) == (DeadReason.MISSING_HEADER, True)


@pytest.mark.parametrize("headers", [None, []])
def test_no_headers_at_all(headers: list[tuple[str, bytes | None]] | None) -> None:
    with pytest.raises(ContractError, match="ce_id is missing") as caught:
        decode(TOPIC, KEY, headers, BODY, catalogue=CATALOGUE)
    assert caught.value.partial == Identity()


def test_a_record_without_a_key_is_missing_it() -> None:
    error = refused(key=None)
    assert error.reason is DeadReason.MISSING_HEADER
    assert "no key; it must be <tenant>:<subject>" in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_id", b""),
        ("ce_id", b"17"),
        ("ce_id", EVENT_ID.upper().encode()),
        ("ce_id", b"019a0000-0000-4000-8000-00000000000a"),
        ("ce_id", EVENT_ID.encode() + b"\n"),
        ("ce_id", b"\xff"),
        ("ce_tenant", b""),
        ("ce_tenant", b"Acme"),
        ("ce_tenant", b"a" * 41),
        ("ce_tenant", b"a:b"),
        ("ce_tenant", b"\xff"),
        ("ce_subject", b""),
        ("ce_subject", b"C:1"),
        ("ce_subject", b"C" * 129),
        ("ce_subject", b"\xff"),
        ("ce_type", b"\xff"),
        ("ce_time", b""),
        ("ce_time", b"yesterday"),
        ("ce_time", b"2026-03-01T12:00:00"),
        ("ce_time", b"\xff"),
        ("ce_time", b"0001-01-01T00:00:00+12:00"),
        ("recorded_at", b"1772359200"),
        ("recorded_at", b"9999-12-31T23:59:59-12:00"),
    ],
)
def test_a_malformed_header_is_named(name: str, value: bytes) -> None:
    headers = {name: value}
    tenant, subject = headers.get("ce_tenant", b"acme"), headers.get("ce_subject", b"C-1")
    error = refused(key=tenant + b":" + subject, **headers)
    assert error.reason is DeadReason.MALFORMED_HEADER
    assert (f"header {name} " in str(error)) or name == "ce_type" or value == b"\xff"


def test_a_topic_of_no_product() -> None:
    error = refused(topic="events.loans")
    assert error.reason is DeadReason.UNKNOWN_PRODUCT
    assert "there are cards. Name its folder in TELLONCE_PRODUCTS" in str(error)


def test_another_product_on_this_topic() -> None:
    error = refused(ce_source=b"loans")
    assert (error.reason, str(error)) == (
        DeadReason.WRONG_PRODUCT,
        "header ce_source says 'loans' on topic events.cards",
    )


def test_headers_of_another_tenant_than_the_key() -> None:
    error = refused(key=b"other:C-1")
    assert (error.reason, str(error)) == (
        DeadReason.WRONG_TENANT,
        "header ce_tenant says 'acme', the key says 'other'",
    )


@pytest.mark.parametrize("key", [b"acme:C-2", b"acme:", b"acme", b"acme:C-1:x", b"acme:\xff"])
def test_headers_of_another_subject_than_the_key(key: bytes) -> None:
    error = refused(key=key)
    assert error.reason is DeadReason.WRONG_SUBJECT
    assert "header ce_subject says 'C-1', the key says" in str(error)


def test_a_type_that_the_product_does_not_have() -> None:
    error = refused(ce_type=b"cards.orderd")
    assert error.reason is DeadReason.UNKNOWN_TYPE
    assert "no event type 'cards.orderd'; did you mean cards.ordered?" in str(error)
    assert error.partial == Identity("acme", EVENT_ID, "cards.orderd")


@pytest.mark.parametrize("value", [None, b""])
def test_no_body(value: bytes | None) -> None:
    assert refused(value=value).reason is DeadReason.EMPTY


def test_the_limit_is_for_bytes_and_inclusive() -> None:
    found = list(HEADERS.items())
    assert decode(TOPIC, KEY, found, BODY, catalogue=CATALOGUE, payload_limit=len(BODY)) == read()
    with pytest.raises(ContractError, match=r"has 29 bytes, the limit is 28") as caught:
        decode(TOPIC, KEY, found, BODY, catalogue=CATALOGUE, payload_limit=len(BODY) - 1)
    assert caught.value.reason is DeadReason.OVERSIZED


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", DeadReason.UNDECODABLE),
        (b'{"owner_id":"\xff"}', DeadReason.UNDECODABLE),
        (b"{} {}", DeadReason.UNDECODABLE),
        (b"[]", DeadReason.UNDECODABLE),
        (b" {}", DeadReason.SCHEMA_MISMATCH),
        (b"owner", DeadReason.UNDECODABLE),
        (b"\xff\xfe", DeadReason.UNDECODABLE),
        (b'{"owner_id":5}', DeadReason.SCHEMA_MISMATCH),
        (b"{}", DeadReason.SCHEMA_MISMATCH),
        (b"\xc3\x01", DeadReason.UNKNOWN_SCHEMA),
        (b"\xc3\x01" + b"\0" * 20, DeadReason.UNKNOWN_SCHEMA),
        (b"\x00", DeadReason.UNKNOWN_SCHEMA),
        (b"\x00\0\0\0\x07abc", DeadReason.UNKNOWN_SCHEMA),
        (ORDERED.avro_body({"owner_id": "u"})[:-1], DeadReason.CORRUPT_AVRO),
    ],
)
def test_a_body_that_is_no_event_of_its_type(body: bytes, reason: DeadReason) -> None:
    error = refused(value=body)
    assert error.reason is reason
    assert str(error).startswith("cards.ordered: ")
    assert error.partial == Identity("acme", EVENT_ID, "cards.ordered")


def test_a_refused_record_gives_what_identity_it_has() -> None:
    error = refused(without="ce_type", ce_tenant=b"\xff", ce_id=b"x")
    assert error.partial == Identity("\\xff", "x", None)


def test_every_instant_is_in_utc() -> None:
    far = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=14)))
    assert read(ce_time=far.isoformat().encode()).occurred_at == far


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(HEADERS)), st.none() | st.binary(max_size=40), max_size=3),
    st.none() | st.binary(max_size=30) | st.just(KEY),
    st.none() | st.binary(max_size=60) | st.just(BODY),
)
def test_whatever_comes_is_an_event_or_refused(
    headers: dict[str, bytes | None], key: bytes | None, value: bytes | None
) -> None:
    with suppress(ContractError):
        decode(TOPIC, key, list({**HEADERS, **headers}.items()), value, catalogue=CATALOGUE)
