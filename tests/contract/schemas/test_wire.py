"""Layouts that others read: RFC 9562 ids, CRC-64-AVRO, single-object encoding. Vectors are the standards' own."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import fastavro
import pytest

from schemas import avro
from schemas.ids import derived_id, uuid7_from
from schemas.states import (
    DeadLetterState,
    DeadReason,
    DecisionOutcome,
    DropReason,
    NudgeReason,
    NudgeState,
    TenantState,
)
from tests.unit.schemas.contracts import contract_of, field, schema_of

CAUSE = "019a1b2c-3d4e-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("schema", "fingerprint"), [("int", 0x7275D51A3F395C8F), ("null", 0x63DD24E7CC258F8A)]
)
def test_crc_64_avro_is_the_published_one_little_endian(schema: str, fingerprint: int) -> None:
    assert avro.fingerprint_of(schema) == fingerprint.to_bytes(8, "little")


def test_docs_and_order_of_attributes_do_not_change_a_fingerprint() -> None:
    plain = schema_of(field("a", "int"))
    dressed = {
        "doc": "text",
        **dict(reversed(plain.items())),
        "fields": [field("a", {"type": "int"}, doc="text")],
    }
    assert avro.fingerprint_of(avro.parse(plain)) == avro.fingerprint_of(avro.parse(dressed))


def test_single_object_encoding_is_marker_fingerprint_body() -> None:
    schema = schema_of(field("n", "long"), field("s", "string"))
    body = contract_of(*schema["fields"]).avro_body({"n": -3, "s": "ab"})
    assert body[:2] == b"\xc3\x01"
    assert body[2:10] == avro.fingerprint_of(fastavro.parse_schema(schema))
    assert body[10:] == b"\x05\x04ab"  # zigzag -3; length 2, then the text


def test_a_derived_id_is_version_8_with_the_causes_time_and_a_hash() -> None:
    bits = UUID(derived_id(CAUSE, "nudge", "cards.hurry")).int
    digest = sha256(f"{CAUSE}\x1fnudge\x1fcards.hurry".encode()).hexdigest()
    assert bits >> 80 == 0x019A1B2C3D4E  # 48 bits of time
    assert bits >> 76 & 0xF == 8  # version
    assert bits >> 64 & 0xFFF == int(digest[:3], 16)
    assert bits >> 62 & 0b11 == 0b10  # variant
    assert bits >> 60 & 0b11 == int(digest[3], 16) & 0b11
    assert bits & (1 << 60) - 1 == int(digest[4:19], 16)


def test_ids_that_are_stored_everywhere_never_change() -> None:
    assert derived_id(CAUSE, "nudge") == "019a1b2c-3d4e-8121-b131-ea55febdd963"
    assert uuid7_from(0x019A1B2C3D4E, b"seed") == "019a1b2c-3d4e-719b-a585-6e1c150ca834"


def test_words_that_are_stored_are_lower_case_names_of_themselves() -> None:
    for vocabulary in (
        TenantState,
        NudgeState,
        NudgeReason,
        DecisionOutcome,
        DropReason,
        DeadReason,
        DeadLetterState,
    ):
        for word in vocabulary:
            assert word.value == word.name.lower()


def test_a_nudge_is_live_until_it_is_sent_or_cancelled() -> None:
    assert {state for state in NudgeState if state.is_live} == {NudgeState.SCHEDULED, NudgeState.PENDING}
