"""JSON bodies held against an Avro schema: one compiled check per schema, with the path of what is wrong.

| Avro | JSON |
|---|---|
| union | the bare value of one branch; a field whose union has null may be left out |
| timestamp-millis, -micros | RFC 3339 text with a zone |
| date, uuid, decimal | ISO date, canonical text, decimal text |
| bytes, fixed | base64 text |
| enum | its symbol |

Fields that the schema does not have are left out, as a reader with that schema would leave them out of Avro.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

Check = Callable[[object], object]
"""Returns the value in Python's form; raises `Mismatch`."""

_MISSING = object()
_INT = (-(1 << 31), (1 << 31) - 1)
_LONG = (-(1 << 63), (1 << 63) - 1)


class Mismatch(ValueError):  # noqa: N818 what it is, not that it is an error
    """A value that the schema refuses: where, what was expected, what was found."""

    def __init__(self, expected: str, found: object, path: str = "") -> None:
        self.expected, self.found, self.path = expected, found, path
        super().__init__(f"{path or 'the body'}: expected {expected}, found {_shown(found)}")

    def under(self, step: str) -> Mismatch:
        """The same, seen from one level further out."""
        joined = f"{step}{self.path}" if self.path.startswith("[") or not self.path else f"{step}.{self.path}"
        return Mismatch(self.expected, self.found, joined)


def compile_check(schema: Any) -> Check:
    """The check of a parsed Avro schema."""
    return _compile(schema, {})


def _compile(schema: Any, named: dict[str, Check]) -> Check:
    if isinstance(schema, list):
        return _union([(branch, _compile(branch, named)) for branch in schema])
    if isinstance(schema, str):
        if schema in named:
            return lambda value: named[schema](value)
        return _PRIMITIVES[schema]
    kind = schema["type"]
    logical = _LOGICAL.get(schema.get("logicalType", ""))
    if logical is not None:
        return logical
    if kind == "record":
        return _record(schema, named)
    if kind == "enum":
        return _enum(frozenset(schema["symbols"]))
    if kind == "array":
        return _array(_compile(schema["items"], named))
    if kind == "map":
        return _map(_compile(schema["values"], named))
    if kind == "fixed":
        return _PRIMITIVES["bytes"]
    return _compile(kind, named)


def _record(schema: Mapping[str, Any], named: dict[str, Check]) -> Check:
    fields: list[tuple[str, Check, object]] = []

    def check(value: object) -> object:
        if not isinstance(value, dict):
            raise Mismatch("an object", value)
        result: dict[str, object] = {}
        for name, check_field, default in fields:
            found = value.get(name, default)
            if found is _MISSING:
                raise Mismatch("a value, the field is required", None, name)
            try:
                result[name] = check_field(found)
            except Mismatch as error:
                raise error.under(name) from None
        return result

    named[schema["name"]] = check
    for item in schema["fields"]:
        nullable = isinstance(item["type"], list) and "null" in item["type"]
        default = item.get("default", None if nullable else _MISSING)
        fields.append((item["name"], _compile(item["type"], named), default))
    return check


def _union(branches: list[tuple[Any, Check]]) -> Check:
    others = [check for schema, check in branches if schema != "null"]
    nullable = len(others) < len(branches)

    def check(value: object) -> object:
        if value is None and nullable:
            return None
        failure: Mismatch | None = None
        for branch in others:
            try:
                return branch(value)
            except Mismatch as error:
                failure = failure or error
        if failure is None:
            raise Mismatch("null", value)
        if nullable:
            raise Mismatch(f"{failure.expected} or null", failure.found, failure.path)
        raise failure

    return check


def _enum(symbols: frozenset[str]) -> Check:
    expected = f"one of {', '.join(sorted(symbols))}"

    def check(value: object) -> object:
        if isinstance(value, str) and value in symbols:
            return value
        raise Mismatch(expected, value)

    return check


def _array(item: Check) -> Check:
    def check(value: object) -> object:
        if not isinstance(value, list):
            raise Mismatch("an array", value)
        result = []
        for index, found in enumerate(value):
            try:
                result.append(item(found))
            except Mismatch as error:
                raise error.under(f"[{index}]") from None
        return result

    return check


def _map(item: Check) -> Check:
    def check(value: object) -> object:
        if not isinstance(value, dict):
            raise Mismatch("an object", value)
        result = {}
        for key, found in value.items():
            try:
                result[key] = item(found)
            except Mismatch as error:
                raise error.under(key) from None
        return result

    return check


def _integer(low: int, high: int, expected: str) -> Check:
    def check(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        raise Mismatch(expected, value)

    return check


def _text(value: object) -> object:
    if isinstance(value, str):
        return value
    raise Mismatch("string", value)


def _number(value: object) -> object:
    if isinstance(value, float):
        return value
    if type(value) is int:
        return float(value)
    raise Mismatch("double", value)


def _truth(value: object) -> object:
    if isinstance(value, bool):
        return value
    raise Mismatch("boolean", value)


def _nothing(value: object) -> object:
    if value is None:
        return None
    raise Mismatch("null", value)


def _bytes(value: object) -> object:
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except binascii.Error:
        pass
    raise Mismatch("base64 text", value)


def _from_text(expected: str, read: Callable[[str], object]) -> Check:
    def check(value: object) -> object:
        try:
            if isinstance(value, str):
                return read(value)
        except (ValueError, InvalidOperation):
            pass
        raise Mismatch(expected, value)

    return check


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment


_PRIMITIVES: dict[str, Check] = {
    "null": _nothing,
    "boolean": _truth,
    "int": _integer(*_INT, "int"),
    "long": _integer(*_LONG, "long"),
    "float": _number,
    "double": _number,
    "string": _text,
    "bytes": _bytes,
}
_TIMESTAMP = _from_text("an RFC 3339 instant such as 2026-12-01T09:00:00Z", _instant)
_LOGICAL: dict[str, Check] = {
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "date": _from_text("an ISO date such as 2026-12-01", date.fromisoformat),
    "uuid": _from_text("a UUID", lambda text: str(UUID(text))),
    "decimal": _from_text('a decimal in quotes such as "12.50"', Decimal),
}


def _shown(value: object) -> str:
    text = repr(value)
    kind = (
        "null" if value is None else type(value).__name__.replace("str", "string").replace("dict", "object")
    )
    return kind if value is None else f"{kind} {text[:60]}{'…' if len(text) > 60 else ''}"
