"""A body's size bounds the work of reading it: shapes that break this are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas import avro
from schemas.bounds import unbounded
from schemas.products.check import check_folder
from tests.unit.schemas.contracts import field, schema_of

NOTHING = {"type": "record", "name": "nothing", "fields": []}
ITSELF = {"type": "record", "name": "node", "fields": [field("next", ["null", "node"])]}

REFUSED: list[tuple[str, Any, str]] = [
    ("a record of itself", ITSELF, "a.next: cards.node contains itself"),
    ("in a list", {**ITSELF, "fields": [field("c", {"type": "array", "items": "node"})]}, "a.c[]: "),
    ("in a map", {**ITSELF, "fields": [field("c", {"type": "map", "values": "node"})]}, "a.c{}: "),
    ("nulls", {"type": "array", "items": "null"}, "a: its items take no bytes"),
    ("nulls, said at length", {"type": "array", "items": {"type": "null"}}, "a: its items"),
    ("empty records", {"type": "array", "items": NOTHING}, "a: its items"),
    (
        "records of empty ones",
        {"type": "array", "items": {"type": "record", "name": "outer", "fields": [field("x", NOTHING)]}},
        "a: its items",
    ),
    (
        "nothing fixed",
        {"type": "array", "items": {"type": "fixed", "name": "none", "size": 0}},
        "a: its items",
    ),
    ("deep inside", {"type": "map", "values": {"type": "array", "items": "null"}}, "a{}: its items"),
]

ACCEPTED: list[tuple[str, Any]] = [
    ("a list", {"type": "array", "items": "int"}),
    ("a list of unions", {"type": "array", "items": ["null", "int"]}),
    ("a list of lists", {"type": "array", "items": {"type": "array", "items": "string"}}),
    ("a map of nulls, whose keys take bytes", {"type": "map", "values": "null"}),
    ("one null", "null"),
    ("an enum", {"type": "array", "items": {"type": "enum", "name": "e", "symbols": ["ONE"]}}),
]


@pytest.mark.parametrize(("kind", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused(kind: Any, message: str) -> None:
    (problem,) = unbounded(avro.parse(schema_of(field("a", kind))))
    assert problem.startswith(message)


@pytest.mark.parametrize("kind", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_accepted(kind: Any) -> None:
    assert unbounded(avro.parse(schema_of(field("a", kind)))) == []


def test_one_record_used_twice_does_not_contain_itself() -> None:
    money = {"type": "record", "name": "money", "fields": [field("amount", "long")]}
    assert unbounded(avro.parse(schema_of(field("a", money), field("b", "money")))) == []


def test_a_named_record_without_fields_used_later() -> None:
    schema = schema_of(field("a", NOTHING), field("b", {"type": "array", "items": "nothing"}))
    assert [p.partition(":")[0] for p in unbounded(avro.parse(schema))] == ["b"]


def test_a_product_is_told_where() -> None:
    schema = schema_of(
        field("id", "string", doc="x"), field("many", {"type": "array", "items": "null"}, doc="x")
    )
    text = json.dumps(schema, indent=1).encode()
    files = {
        "product.yaml": b"product: cards\nsubject: card\n",
        "events/ordered.avsc": text,
        "history/ordered/1.avsc": text,
        "samples/ordered.json": b'{"id": "1", "many": []}',
    }
    line = next(n for n, said in enumerate(text.decode().splitlines(), start=1) if '"many"' in said)
    told = [str(problem).partition(": its items")[0] for problem in check_folder(files).problems]
    assert told == [f"events/ordered.avsc:{line}: many", f"history/ordered/1.avsc:{line}: many"]
