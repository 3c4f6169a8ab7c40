"""A body is read as what it is, and names its schema when it is Avro."""

from __future__ import annotations

import pytest

from schemas import avro
from schemas.codec import AVRO_TYPE, JSON_TYPE, BodyError, EventContract
from schemas.states import DeadReason
from tests.unit.schemas.contracts import contract_of, field, schema_of

OWNER = field("owner_id", "string")
AMOUNT = field("amount", ["null", "long"], default=None)
VERSION_1, VERSION_2 = schema_of(OWNER), schema_of(OWNER, AMOUNT)
STRANGER = contract_of(field("x", "int"))


@pytest.fixture
def contract() -> EventContract:
    return contract_of(OWNER, AMOUNT, older=[VERSION_1], confluent={7: VERSION_1, 8: VERSION_2})


def refused(contract: EventContract, body: bytes) -> BodyError:
    with pytest.raises(BodyError) as caught:
        contract.read(body, AVRO_TYPE)
    return caught.value


def confluent(number: int, single_object: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + single_object[10:]


def test_both_forms_are_the_same_payload(contract: EventContract) -> None:
    payload = {"owner_id": "u-1", "amount": 5}
    assert contract.read(contract.body(payload), JSON_TYPE) == payload
    assert contract.read(contract.avro_body(payload), AVRO_TYPE) == payload


@pytest.mark.parametrize("space", [b" ", b"\n", b"\r\n\t  "])
def test_space_before_json_is_json_as_the_outbox_has_it(contract: EventContract, space: bytes) -> None:
    assert contract.read(space + b'{"owner_id":"u"}' + space, JSON_TYPE)["owner_id"] == "u"


def test_an_older_version_is_read_as_todays(contract: EventContract) -> None:
    old = contract_of(OWNER).avro_body({"owner_id": "u-1"})
    assert contract.read(old, AVRO_TYPE) == {"owner_id": "u-1", "amount": None}
    assert contract.read(b'{"owner_id":"u-1"}', JSON_TYPE) == {"owner_id": "u-1", "amount": None}


def test_a_registrys_framing_names_the_version(contract: EventContract) -> None:
    old, new = (
        contract_of(OWNER).avro_body({"owner_id": "u"}),
        contract.avro_body({"owner_id": "u", "amount": 9}),
    )
    assert contract.read(confluent(7, old), AVRO_TYPE) == {"owner_id": "u", "amount": None}
    assert contract.read(confluent(8, new), AVRO_TYPE) == {"owner_id": "u", "amount": 9}


def test_a_registry_id_that_is_not_known(contract: EventContract) -> None:
    error = refused(contract, confluent(9, contract.avro_body({"owner_id": "u"})))
    assert error.reason is DeadReason.UNKNOWN_SCHEMA
    assert "(registry id 9)" in str(error)
    assert "`confluent_ids`" in str(error)


def test_a_fingerprint_that_is_not_known_is_shown_as_a_number(contract: EventContract) -> None:
    body = STRANGER.avro_body({"x": 1})
    error = refused(contract, body)
    assert error.reason is DeadReason.UNKNOWN_SCHEMA
    assert f"(fingerprint {int.from_bytes(body[2:10], 'little'):016x})" in str(error)


def test_a_body_cut_anywhere_is_corrupt(contract: EventContract) -> None:
    body = contract.avro_body({"owner_id": "u-1", "amount": 5})
    for length in range(10, len(body)):
        assert refused(contract, body[:length]).reason is DeadReason.CORRUPT_AVRO, length
    for length in range(2, 10):
        assert refused(contract, body[:length]).reason is DeadReason.UNKNOWN_SCHEMA, length


def test_bytes_behind_the_record_are_corrupt(contract: EventContract) -> None:
    error = refused(contract, contract.avro_body({"owner_id": "u-1"}) + b"ab")
    assert (error.reason, str(error)) == (
        DeadReason.CORRUPT_AVRO,
        "cards.ordered: has 2 bytes behind the record",
    )


@pytest.mark.parametrize(
    "rest", [b"\x07", b"\x80" * 30, b"\x04\xff\xfe\x00", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"]
)
def test_bytes_that_are_no_record_are_corrupt(contract: EventContract, rest: bytes) -> None:
    head = contract.avro_body({"owner_id": "u"})[:10]
    assert refused(contract, head + rest).reason is DeadReason.CORRUPT_AVRO


def test_neither_form_says_what_was_promised(contract: EventContract) -> None:
    with pytest.raises(
        BodyError, match=r"content-type says 'text/xml', .* neither a JSON object nor framed Avro"
    ):
        contract.read(b"<owner/>", b"text/xml")
    assert refused(contract, b"<").reason is DeadReason.UNDECODABLE


def test_a_mismatch_names_event_and_field(contract: EventContract) -> None:
    for write in (contract.body, contract.avro_body):
        with pytest.raises(
            BodyError, match=r"^cards\.ordered: amount: expected long or null, found string '5'$"
        ):
            write({"owner_id": "u", "amount": "5"})


def test_json_nested_beyond_reason_is_a_mismatch() -> None:
    nested = contract_of(field("next", ["null", "ordered"], default=None))
    body = b'{"next":' * 900 + b"null" + b"}" * 900
    with pytest.raises(BodyError) as caught:
        nested.read(body, JSON_TYPE)
    assert caught.value.reason in (DeadReason.SCHEMA_MISMATCH, DeadReason.UNDECODABLE)


def test_the_fields_are_known_by_name(contract: EventContract) -> None:
    assert contract.fields == {"owner_id": "string", "amount": ["null", "long"]}


def test_only_framed_bodies_are_taken_for_avro(contract: EventContract) -> None:
    writers = avro.Writers(avro.parse(VERSION_1), {})
    assert writers.is_framed(contract.avro_body({"owner_id": "u"}))
    assert writers.is_framed(b"\x00\0\0\0\x01")
    assert not any(map(writers.is_framed, (b"", b"{}", b"\xc3", b"\xc3\x02", b"Obj\x01")))
