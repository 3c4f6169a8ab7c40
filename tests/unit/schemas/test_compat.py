"""What may change in a published schema, and what may not."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import avro
from schemas.codec import JSON_TYPE, EventContract
from schemas.compat import incompatibilities
from tests.unit.schemas.contracts import contract_of, field, schema_of

A = field("a", "int")
COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "blue"]}
LINE = {"type": "record", "name": "line", "fields": [field("n", "int")]}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def fixed(size: int, name: str = "two") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def reasons(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    return incompatibilities(avro.parse(new), avro.parse(old))


COMPATIBLE: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("nothing", [A], [A]),
    ("a new field with a default", [A, field("b", ["null", "int"], default=None)], [A]),
    ("a field that is gone", [A], [A, field("b", "int")]),
    ("another order", [field("b", "int"), A], [A, field("b", "int")]),
    ("int to long", [field("a", "long")], [A]),
    ("int to double", [field("a", "double")], [A]),
    ("long to float", [field("a", "float")], [field("a", "long")]),
    ("float to double", [field("a", "double")], [field("a", "float")]),
    ("now nullable", [field("a", ["null", "int"])], [A]),
    ("one more branch", [field("a", ["null", "int", "string"])], [field("a", ["null", "int"])]),
    ("another name with an alias", [field("b", "int", aliases=["a"])], [A]),
    ("one more symbol", [field("a", {**COLOUR, "symbols": ["red", "blue", "green"]})], [field("a", COLOUR)]),
    (
        "a symbol less, a default",
        [field("a", {**COLOUR, "symbols": ["red"], "default": "red"})],
        [field("a", COLOUR)],
    ),
    (
        "items promoted",
        [field("a", {"type": "array", "items": "long"})],
        [field("a", {"type": "array", "items": "int"})],
    ),
    (
        "a named type written out",
        [field("a", LINE), field("b", "line")],
        [field("a", LINE), field("b", "line")],
    ),
    ("other docs", [field("a", "int", doc="new")], [field("a", "int", doc="old")]),
    ("a list of itself", [field("a", ["null", "ordered"])], [field("a", ["null", "ordered"])]),
]


@pytest.mark.parametrize(("what", "new", "old"), COMPATIBLE, ids=[what for what, _, _ in COMPATIBLE])
def test_may_change(what: str, new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
    assert reasons(schema_of(*new), schema_of(*old)) == []


BREAKING: list[tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = [
    ([A, field("b", "int")], [A], "b: is new and has no default, so older bodies have no value for it"),
    (
        [A, field("b", ["null", "int"])],
        [A],
        "b: is new and has no default, so older bodies have no value for it",
    ),
    ([field("b", "int")], [A], "b: is new and has no default, so older bodies have no value for it"),
    ([field("a", "string")], [A], "a: was int, is string"),
    ([A], [field("a", "long")], "a: was long, is int"),
    ([field("a", "bytes")], [field("a", "string")], "a: was string, is bytes"),
    ([field("a", "string")], [field("a", "bytes")], "a: was bytes, is string"),
    ([A], [field("a", ["null", "int"])], "a: was null, is int"),
    ([field("a", ["null", "int"])], [field("a", ["null", "string"])], "a: was string, is one of null, int"),
    ([field("a", MILLIS)], [field("a", "long")], "a: was long, is timestamp-millis"),
    ([field("a", MILLIS)], [A], "a: was int, is timestamp-millis"),
    ([field("a", "long")], [field("a", {"type": "int", "logicalType": "date"})], "a: was date, is long"),
    (
        [field("a", {**COLOUR, "symbols": ["red"]})],
        [field("a", COLOUR)],
        "a: symbols ['blue'] are gone and no default stands in",
    ),
    (
        [field("a", {**COLOUR, "name": "paint"})],
        [field("a", COLOUR)],
        "a: was named cards.colour, is cards.paint",
    ),
    ([field("a", fixed(3))], [field("a", fixed(2))], "a: was 2 bytes, is 3"),
    (
        [field("a", {**MONEY, "scale": 3})],
        [field("a", MONEY)],
        "a: was a decimal of 9 digits, 2 behind the point, is of 9 digits, 3 behind the point",
    ),
    (
        [field("a", {"type": "array", "items": {**LINE, "fields": [field("n", "string")]}})],
        [field("a", {"type": "array", "items": LINE})],
        "a[].n: was int, is string",
    ),
    (
        [field("a", {"type": "map", "values": "int"})],
        [field("a", {"type": "map", "values": "string"})],
        "a{}: was string, is int",
    ),
    (
        [field("a", ["null", {**LINE, "fields": [field("n", "string")]}])],
        [field("a", ["null", LINE])],
        "a.n: was int, is string",
    ),
]


@pytest.mark.parametrize(("new", "old", "reason"), BREAKING, ids=[reason[:40] for _, _, reason in BREAKING])
def test_may_not_change(new: list[dict[str, Any]], old: list[dict[str, Any]], reason: str) -> None:
    assert reasons(schema_of(*new), schema_of(*old)) == [reason]


def test_the_record_keeps_its_name() -> None:
    assert reasons(schema_of(A, name="placed"), schema_of(A)) == [
        "the record: was named cards.ordered, is cards.placed"
    ]


def test_every_reason_is_told() -> None:
    found = reasons(schema_of(field("a", "string"), field("b", "int")), schema_of(A))
    assert [reason.partition(":")[0] for reason in found] == ["a", "b"]


VALUES: dict[str, object] = {"int": 5, "long": 5, "float": 5.0, "string": "x"}


@pytest.mark.parametrize(
    ("what", "new", "old"), COMPATIBLE[:10], ids=[what for what, _, _ in COMPATIBLE[:10]]
)
def test_what_may_change_is_read_in_both_forms(
    what: str, new: list[dict[str, Any]], old: list[dict[str, Any]]
) -> None:
    before: EventContract = contract_of(*old)
    after = contract_of(*new, older=[schema_of(*old)])
    payload = {
        item["name"]: VALUES[item["type"] if isinstance(item["type"], str) else item["type"][1]]
        for item in old
    }
    as_avro = after.read(before.avro_body(payload), b"avro/binary")
    assert as_avro == after.read(before.body(payload), JSON_TYPE)
    assert set(as_avro) == {item["name"] for item in new}


def test_a_renamed_field_is_read_in_both_forms() -> None:
    after = contract_of(field("b", "int", aliases=["a"]), older=[schema_of(A)])
    before = contract_of(A)
    payload = {"a": 5}
    assert after.read(before.avro_body(payload), b"avro/binary") == {"b": 5}
    assert after.read(before.body(payload), JSON_TYPE) == {"b": 5}
