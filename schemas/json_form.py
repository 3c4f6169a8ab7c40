"""JSON bodies held against an Avro schema: one compiled check per schema, with the path of what is wrong.

| Avro | JSON |
|---|---|
| union | the bare value of one branch, the first that it fits; a field whose union has null may be left out |
| timestamp-millis, -micros | RFC 3339 text with a zone; local-timestamp-… without |
| date, time-…, uuid, decimal | ISO date, ISO time, canonical text, decimal text |
| bytes, fixed | base64 text |
| enum | its symbol; one that it does not have reads as its default, when it has one |

Fields that the schema does not have are left out, and aliases are looked under, as a reader with that schema
does with Avro.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.json_scalars import Check, Mismatch, scalar

__all__ = ["Check", "Mismatch", "compile_check"]

_MISSING = object()


def compile_check(schema: Any) -> Check:
    """The check of a parsed Avro schema."""
    return _compile(schema, {})


def _compile(schema: Any, named: dict[str, Check]) -> Check:
    if isinstance(schema, list):
        return _union([(branch, _compile(branch, named)) for branch in schema])
    check = scalar(schema)
    if check is None:
        if isinstance(schema, str):
            return lambda value: named[schema](value)
        check = _composite(schema, named)
    if not isinstance(schema, str) and "name" in schema:
        named[schema["name"]] = check
    return check


def _composite(schema: Mapping[str, Any], named: dict[str, Check]) -> Check:
    match schema["type"]:
        case "record" | "error":
            return _record(schema, named)
        case "enum":
            return _enum(frozenset(schema["symbols"]), schema.get("default"))
        case "array":
            return _array(_compile(schema["items"], named))
        case "map":
            return _map(_compile(schema["values"], named))
        case inner:
            return _compile(inner, named)


def _record(schema: Mapping[str, Any], named: dict[str, Check]) -> Check:
    fields: list[tuple[str, Check, object, tuple[str, ...]]] = []

    def check(value: object) -> object:
        if not isinstance(value, dict):
            raise Mismatch("an object", value)
        result: dict[str, object] = {}
        for name, check_field, default, aliases in fields:
            found = value.get(name, default)
            if aliases and name not in value:
                found = next((value[alias] for alias in aliases if alias in value), default)
            if found is _MISSING:
                raise Mismatch("a value, the field is required", None, name)
            try:
                result[name] = check_field(found)
            except Mismatch as error:
                raise error.under(name) from None
        return result

    named[schema["name"]] = check  # before its fields, which may name it
    for item in schema["fields"]:
        nullable = isinstance(item["type"], list) and "null" in item["type"]
        default = item.get("default", None if nullable else _MISSING)
        aliases = tuple(item.get("aliases", ()))
        fields.append((item["name"], _compile(item["type"], named), default, aliases))
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


def _enum(symbols: frozenset[str], default: str | None) -> Check:
    expected = f"one of {', '.join(sorted(symbols))}"

    def check(value: object) -> object:
        if isinstance(value, str):
            if value in symbols:
                return value
            if default is not None:
                return default
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
