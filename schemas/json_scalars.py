"""The leaves of a JSON body: one check per primitive and logical type, each giving what Avro would have given.

A value comes out the same whether its body was JSON or Avro: instants in UTC and cut to the schema's precision,
floats with the bits they have on the wire, decimals with the schema's scale.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

Check = Callable[[object], object]
"""Returns the value in Python's form; raises `Mismatch`."""


class Mismatch(ValueError):  # noqa: N818 what it is, not that it is an error
    """A value that the schema refuses: where, what was expected, what was found."""

    def __init__(self, expected: str, found: object, path: str = "") -> None:
        self.expected, self.found, self.path = expected, found, path
        super().__init__(f"{path or 'the body'}: expected {expected}, found {_shown(found)}")

    def under(self, step: str) -> Mismatch:
        """The same, seen from one level further out."""
        joined = f"{step}{self.path}" if self.path.startswith("[") or not self.path else f"{step}.{self.path}"
        return Mismatch(self.expected, self.found, joined)


_KINDS = {
    "str": "string",
    "dict": "object",
    "list": "array",
    "bool": "boolean",
    "int": "number",
    "float": "number",
}


def _shown(value: object) -> str:
    if value is None:
        return "null"
    text = repr(value)
    name = type(value).__name__
    return f"{_KINDS.get(name, name)} {text[:60]}{'…' if len(text) > 60 else ''}"


def scalar(schema: Any) -> Check | None:
    """The check of a primitive, fixed or logical type; None for a type with parts or a name of another."""
    if isinstance(schema, str):
        return _PRIMITIVES.get(schema)
    logical = _LOGICAL.get((schema["type"], schema.get("logicalType", "")))
    if logical is not None:
        return logical(schema)
    if schema["type"] == "fixed":
        return _fixed(schema["size"])
    return None


def is_text_in_json(schema: Any) -> bool:
    """Whether JSON says it in text though Avro says it in a number: instants, dates and times."""
    if not isinstance(schema, Mapping):
        return False
    base, logical = schema.get("type"), schema.get("logicalType")
    return base in ("int", "long") and (base, logical) in _LOGICAL


def _integer(bits: int, expected: str) -> Check:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def check(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        raise Mismatch(expected, value)

    return check


def _text(value: object) -> object:
    if isinstance(value, str):
        return value
    raise Mismatch("string", value)


def _double(value: object) -> object:
    try:
        number = float(value) if type(value) is int else value
    except OverflowError:
        raise Mismatch("double", value) from None
    if isinstance(number, float) and math.isfinite(number):
        return number
    raise Mismatch("double", value)


_SINGLE = struct.Struct("<f")


def _float(value: object) -> object:
    try:
        return _SINGLE.unpack(_SINGLE.pack(_double(value)))[0]
    except (Mismatch, OverflowError):
        raise Mismatch("float", value) from None


def _truth(value: object) -> object:
    if isinstance(value, bool):
        return value
    raise Mismatch("boolean", value)


def _nothing(value: object) -> object:
    if value is None:
        return None
    raise Mismatch("null", value)


def _bytes(value: object) -> bytes:
    try:
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    except ValueError:  # not ASCII, or binascii.Error, which is one
        pass
    raise Mismatch("base64 text", value)


def _fixed(size: int) -> Check:
    def check(value: object) -> object:
        body = _bytes(value)
        if len(body) == size:
            return body
        raise Mismatch(f"base64 text of {size} bytes", value)

    return check


def _from_text(expected: str, read: Callable[[str], object]) -> Check:
    def check(value: object) -> object:
        try:
            if isinstance(value, str):
                return read(value)
        except (ValueError, OverflowError, InvalidOperation):
            pass
        raise Mismatch(expected, value)

    return check


def _cut(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment.astimezone(UTC)


def _local(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None or "T" not in text:
        raise ValueError("a zone, or no time")
    return moment


def _time(text: str) -> time:
    moment = time.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("a zone")
    return moment


def _decimal(schema: Mapping[str, Any]) -> Check:
    precision, scale = schema["precision"], schema.get("scale", 0)
    unit, context = Decimal(1).scaleb(-scale), Context(prec=precision)

    def read(text: str) -> Decimal:
        value = Decimal(text)
        scaled = value.quantize(unit, context=context)  # InvalidOperation: too many digits, infinite
        if not scaled.is_finite() or scaled != value:
            raise ValueError("digits behind the scale")
        return scaled

    return _from_text(f"a decimal of {precision} digits, {scale} behind the point, in quotes", read)


def _always(check: Check) -> Callable[[Mapping[str, Any]], Check]:
    return lambda _schema: check


_PRIMITIVES: dict[str, Check] = {
    "null": _nothing,
    "boolean": _truth,
    "int": _integer(32, "int"),
    "long": _integer(64, "long"),
    "float": _float,
    "double": _double,
    "string": _text,
    "bytes": _bytes,
}
_INSTANT = "an RFC 3339 instant such as 2026-12-01T09:00:00Z"
_WALL = "a local date and time such as 2026-12-01T09:00:00"
_DAYTIME = "a time such as 09:00:00"
_LOGICAL: dict[tuple[str, str], Callable[[Mapping[str, Any]], Check]] = {
    ("long", "timestamp-millis"): _always(_from_text(_INSTANT, lambda text: _cut(_instant(text)))),
    ("long", "timestamp-micros"): _always(_from_text(_INSTANT, _instant)),
    ("long", "local-timestamp-millis"): _always(_from_text(_WALL, lambda text: _cut(_local(text)))),
    ("long", "local-timestamp-micros"): _always(_from_text(_WALL, _local)),
    ("int", "time-millis"): _always(
        _from_text(_DAYTIME, lambda t: _time(t).replace(microsecond=_time(t).microsecond // 1000 * 1000))
    ),
    ("long", "time-micros"): _always(_from_text(_DAYTIME, _time)),
    ("int", "date"): _always(_from_text("an ISO date such as 2026-12-01", date.fromisoformat)),
    ("string", "uuid"): _always(_from_text("a UUID", UUID)),
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
}
"""By the type a logical type annotates: on any other it is ignored, as Avro has it."""
