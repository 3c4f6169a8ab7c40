"""JSON bodies of every Avro type: what is accepted, as what, and where a mismatch is said to be."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from schemas import avro
from schemas.json_form import Check, Mismatch, compile_check
from tests.unit.schemas.contracts import field, schema_of


def logical(kind: str, logical_type: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def check_of(kind: Any) -> Check:
    return compile_check(avro.parse(schema_of(field("a", kind))))


def taken(kind: Any, value: object) -> object:
    result = check_of(kind)({"a": value})
    assert isinstance(result, dict)
    return result["a"]


COLOUR = {"type": "enum", "name": "colour", "symbols": ["red", "blue"]}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "n", "type": "int"}]}
DECIMAL = logical("bytes", "decimal", precision=5, scale=2)
ID = "8c0f6fb7-4f10-4c1c-9a63-64a5a0b6a5a1"

ACCEPTED: list[tuple[Any, object, object]] = [
    ("null", None, None),
    ("boolean", True, True),
    ("int", -(1 << 31), -(1 << 31)),
    ("int", (1 << 31) - 1, (1 << 31) - 1),
    ("long", (1 << 63) - 1, (1 << 63) - 1),
    ("float", 0.1, 0.10000000149011612),
    ("float", 3, 3.0),
    ("double", 0.1, 0.1),
    ("double", 3, 3.0),
    ("string", "", ""),
    ("string", "Ä\u0000名", "Ä\u0000名"),
    ("bytes", "AP8=", b"\x00\xff"),
    ({"type": "fixed", "name": "two", "size": 2}, "AP8=", b"\x00\xff"),
    (COLOUR, "red", "red"),
    ({**COLOUR, "default": "blue"}, "green", "blue"),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "array", "items": "int"}, [], []),
    ({"type": "map", "values": "int"}, {"x": 1}, {"x": 1}),
    (INNER, {"n": 1, "more": 2}, {"n": 1}),
    ({"type": "string"}, "x", "x"),
    (["null", "int"], None, None),
    (["null", "int"], 5, 5),
    (["int", "string"], "x", "x"),
    (["null", INNER], {"n": 1}, {"n": 1}),
    (
        logical("long", "timestamp-millis"),
        "2026-12-01T09:00:00.123999Z",
        datetime(2026, 12, 1, 9, 0, 0, 123_000, UTC),
    ),
    (
        logical("long", "timestamp-micros"),
        "2026-12-01T11:00:00.000001+02:00",
        datetime(2026, 12, 1, 9, 0, 0, 1, UTC),
    ),
    (
        logical("long", "local-timestamp-millis"),
        "2026-12-01T09:00:00.1239",
        datetime.fromisoformat("2026-12-01T09:00:00.123"),
    ),
    (
        logical("long", "local-timestamp-micros"),
        "2026-12-01T09:00:00",
        datetime.fromisoformat("2026-12-01T09:00:00"),
    ),
    (logical("int", "time-millis"), "09:00:00.123999", time(9, 0, 0, 123_000)),
    (logical("long", "time-micros"), "09:00:00.000001", time(9, 0, 0, 1)),
    (logical("int", "date"), "2026-12-01", date(2026, 12, 1)),
    (logical("string", "uuid"), ID, UUID(ID)),
    (DECIMAL, "12.5", Decimal("12.50")),
    (DECIMAL, "-999.99", Decimal("-999.99")),
    (logical("fixed", "decimal", precision=4, size=4, name="f"), "12", Decimal("12")),
    (logical("string", "timestamp-millis"), "whenever", "whenever"),
    (logical("string", "mystery"), "x", "x"),
]


@pytest.mark.parametrize(("kind", "value", "result"), ACCEPTED)
def test_accepted(kind: Any, value: object, result: object) -> None:
    found = taken(kind, value)
    assert (found, type(found)) == (result, type(result))


REFUSED: list[tuple[Any, object, str]] = [
    ("null", 0, "expected null, found number 0"),
    ("boolean", 1, "expected boolean, found number 1"),
    ("int", 1 << 31, "expected int, found number 2147483648"),
    ("int", True, "expected int, found boolean True"),
    ("int", 1.0, "expected int, found number 1.0"),
    ("int", "1", "expected int, found string '1'"),
    ("int", None, "expected int, found null"),
    ("long", 1 << 63, "expected long"),
    ("float", 1e300, "expected float"),
    ("float", True, "expected float"),
    ("double", "1", "expected double"),
    ("double", True, "expected double"),
    ("double", float("nan"), "expected double, found number nan"),
    ("double", float("inf"), "expected double"),
    ("double", 10**400, "expected double"),
    ("string", 5, "expected string, found number 5"),
    ("bytes", "no base64!", "expected base64 text"),
    ("bytes", "Ä", "expected base64 text"),
    ("bytes", 5, "expected base64 text"),
    ({"type": "fixed", "name": "two", "size": 2}, "AA==", "expected base64 text of 2 bytes"),
    (COLOUR, "green", "expected one of blue, red, found string 'green'"),
    ({**COLOUR, "default": "blue"}, 5, "expected one of blue, red"),
    ({"type": "array", "items": "int"}, {}, "expected an array, found object {}"),
    ({"type": "map", "values": "int"}, [], "expected an object, found array []"),
    (INNER, "x", "expected an object"),
    (["null", "int"], "x", "expected int or null, found string 'x'"),
    (["null"], "x", "expected null"),
    (["int", "string"], None, "expected int, found null"),
    (logical("long", "timestamp-millis"), "2026-12-01T09:00:00", "expected an RFC 3339 instant"),
    (logical("long", "timestamp-millis"), 1_700_000_000, "expected an RFC 3339 instant"),
    (logical("long", "timestamp-micros"), "0001-01-01T00:00:00+12:00", "expected an RFC 3339 instant"),
    (logical("long", "local-timestamp-micros"), "2026-12-01T09:00:00Z", "expected a local date and time"),
    (logical("long", "local-timestamp-micros"), "2026-12-01", "expected a local date and time"),
    (logical("int", "time-millis"), "09:00:00Z", "expected a time such as 09:00:00"),
    (logical("int", "date"), "2026-13-01", "expected an ISO date"),
    (logical("string", "uuid"), "8c0f", "expected a UUID"),
    (DECIMAL, "12.555", "expected a decimal of 5 digits, 2 behind the point"),
    (DECIMAL, "1000", "expected a decimal"),
    (DECIMAL, "NaN", "expected a decimal"),
    (DECIMAL, "Infinity", "expected a decimal"),
    (DECIMAL, 12.5, "expected a decimal"),
]


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED)
def test_refused(kind: Any, value: object, message: str) -> None:
    with pytest.raises(Mismatch) as caught:
        taken(kind, value)
    assert str(caught.value).startswith(f"a: {message}")


LINE = {"type": "record", "name": "line", "fields": [{"name": "amount", "type": "long"}]}


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ({"type": "array", "items": LINE}, [{"amount": 1}, {"amount": 2}, {"amount": "3"}], "a[2].amount"),
        ({"type": "array", "items": LINE}, [{}], "a[0].amount"),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, [[1], [2, "x"]], "a[1][1]"),
        ({"type": "map", "values": LINE}, {"x": {"amount": None}}, "a.x.amount"),
        ({"type": "map", "values": {"type": "array", "items": "int"}}, {"x": [None]}, "a.x[0]"),
        (["null", LINE], {"amount": "3"}, "a.amount"),
    ],
)
def test_the_path_of_what_is_wrong(kind: Any, value: object, path: str) -> None:
    with pytest.raises(Mismatch) as caught:
        taken(kind, value)
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: expected ")


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_body_that_is_no_object(value: object) -> None:
    with pytest.raises(Mismatch, match=r"^the body: expected an object"):
        check_of("int")(value)


def test_a_required_field_that_is_left_out_is_named() -> None:
    with pytest.raises(Mismatch, match=r"^a: expected a value, the field is required, found null"):
        check_of("int")({})


def test_a_nullable_field_or_one_with_a_default_may_be_left_out() -> None:
    schema = schema_of(
        field("a", ["null", "int"]),
        field("b", "int", default=7),
        field("c", {"type": "array", "items": "int"}, default=[]),
    )
    assert compile_check(avro.parse(schema))({}) == {"a": None, "b": 7, "c": []}


def test_a_renamed_field_is_found_under_its_alias() -> None:
    check = compile_check(avro.parse(schema_of(field("owner_id", "string", aliases=["user", "owner"]))))
    assert check({"owner": "u"}) == check({"owner_id": "u", "owner": "v"}) == {"owner_id": "u"}


def test_a_named_type_may_be_used_again_by_its_name() -> None:
    fixed = {"type": "fixed", "name": "two", "size": 2}
    schema = schema_of(
        field("a", COLOUR),
        field("b", "colour"),
        field("c", fixed),
        field("d", "cards.two"),
        field("e", ["null", "colour"]),
    )
    value = {"a": "red", "b": "blue", "c": "AAA=", "d": "AAA=", "e": "red"}
    assert compile_check(avro.parse(schema))(value) == {**value, "c": b"\0\0", "d": b"\0\0"}


def test_a_record_may_contain_itself() -> None:
    check = compile_check(
        avro.parse(schema_of(field("n", "int"), field("next", ["null", "ordered"], default=None)))
    )
    assert check({"n": 1, "next": {"n": 2}}) == {"n": 1, "next": {"n": 2, "next": None}}
    with pytest.raises(Mismatch, match=r"^next\.next\.n: expected int"):
        check({"n": 1, "next": {"n": 2, "next": {"n": "x"}}})


def test_what_was_found_is_shown_and_cut() -> None:
    with pytest.raises(Mismatch) as caught:
        taken("int", "x" * 500)
    assert len(str(caught.value)) < 120
    assert str(caught.value).endswith("…")
