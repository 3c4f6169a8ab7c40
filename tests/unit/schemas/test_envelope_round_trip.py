"""Whatever an event holds, its headers and body give it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.envelope import (
    Event,
    EventId,
    EventType,
    ProductName,
    SubjectId,
    TenantId,
    decode,
    encode_headers,
)
from schemas.ids import derived_id, uuid7_from
from tests.unit.schemas.contracts import catalogue_of, contract_of, field

CONTRACT = contract_of(field("owner_id", "string"), field("amount", ["null", "long"], default=None))
CATALOGUE = catalogue_of(CONTRACT)

IDS = st.builds(uuid7_from, st.integers(0, 2**48 - 1), st.binary(max_size=8))
INSTANTS = st.datetimes(timezones=st.just(UTC))
SUBJECTS = st.text(st.characters(exclude_characters=":", codec="utf-8"), min_size=1, max_size=128)
EVENTS = st.builds(
    Event,
    event_id=(IDS | IDS.map(lambda cause: derived_id(cause, "part"))).map(EventId),
    tenant_id=st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True).map(TenantId),
    product=st.just(ProductName("cards")),
    subject_id=SUBJECTS.map(SubjectId),
    event_type=st.just(EventType("cards.ordered")),
    occurred_at=INSTANTS,
    recorded_at=INSTANTS,
    payload=st.fixed_dictionaries(
        {
            "owner_id": st.text(st.characters(codec="utf-8")),
            "amount": st.none() | st.integers(-(2**63), 2**63 - 1),
        }
    ),
    traceparent=st.none() | st.from_regex(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", fullmatch=True),
)


@settings(deadline=None)  # a busy machine is no failure
@given(EVENTS)
def test_an_event_comes_back_from_either_body(event: Event) -> None:
    key = f"{event.tenant_id}:{event.subject_id}".encode()
    for content_type, body in (
        ("application/json", CONTRACT.body(event.payload)),
        ("avro/binary", CONTRACT.avro_body(event.payload)),
    ):
        headers = encode_headers(event, content_type)
        assert decode("events.cards", key, headers, body, catalogue=CATALOGUE) == event


@pytest.mark.parametrize("hours", [-11, 0, 5])
def test_times_leave_in_utc(hours: int) -> None:
    at = datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=hours)))
    event = Event(
        EventId(uuid7_from(0, b"")),
        TenantId("acme"),
        ProductName("cards"),
        SubjectId("L-1"),
        EventType("cards.ordered"),
        at,
        at,
        {},
    )
    sent = dict(encode_headers(event))["ce_time"]
    assert sent == at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
