"""Whatever the schema and the payload: its JSON body and its Avro body decode to the same values."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.codec import AVRO_TYPE, JSON_TYPE
from tests.unit.schemas.contracts import contract_of, field

_numbers = count()
_NAMES = st.sampled_from(["id", "amount", "note", "lines", "at"])


@dataclass(frozen=True, slots=True)
class Typed:
    """An Avro type and the JSON values it accepts."""

    schema: Any
    values: st.SearchStrategy[Any]


def _logical(kind: str, logical_type: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def _base64(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[str]:
    return values.map(lambda body: base64.b64encode(body).decode())


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_WALL = st.datetimes(
    min_value=datetime.fromisoformat("1900-01-01"), max_value=datetime.fromisoformat("2200-01-01")
)
_INSTANT = st.datetimes(
    min_value=datetime.fromisoformat("1900-01-01"),
    max_value=datetime.fromisoformat("2200-01-01"),
    timezones=st.timezones() | st.just(UTC),
)
_FINITE = st.floats(allow_nan=False, allow_infinity=False)

LEAVES = [
    Typed("boolean", st.booleans()),
    Typed("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    Typed("long", st.integers(-(1 << 63), (1 << 63) - 1)),
    Typed("float", st.floats(width=32, allow_nan=False, allow_infinity=False) | st.floats(-1e9, 1e9)),
    Typed("double", _FINITE | st.integers(-(1 << 53), 1 << 53)),
    Typed("string", _TEXT),
    Typed("bytes", _base64(st.binary(max_size=12))),
    Typed(_logical("long", "timestamp-millis"), _INSTANT.map(datetime.isoformat)),
    Typed(_logical("long", "timestamp-micros"), _INSTANT.map(datetime.isoformat)),
    Typed(_logical("long", "local-timestamp-millis"), _WALL.map(datetime.isoformat)),
    Typed(_logical("long", "local-timestamp-micros"), _WALL.map(datetime.isoformat)),
    Typed(_logical("int", "time-millis"), st.times().map(lambda moment: moment.isoformat())),
    Typed(_logical("long", "time-micros"), st.times().map(lambda moment: moment.isoformat())),
    Typed(_logical("int", "date"), st.dates().map(lambda day: day.isoformat())),
    Typed(_logical("string", "uuid"), st.uuids().map(str)),
    Typed(
        _logical("bytes", "decimal", precision=9, scale=2),
        st.decimals(Decimal("-9999999.99"), Decimal("9999999.99"), places=2).map(str),
    ),
]


def _named(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Types that need a name of their own: each use makes a new one."""
    fixed = st.integers(1, 6).map(
        lambda size: Typed(
            {"type": "fixed", "name": f"f{next(_numbers)}", "size": size},
            _base64(st.binary(min_size=size, max_size=size)),
        )
    )
    enum = st.lists(st.sampled_from(["red", "green", "blue"]), min_size=1, unique=True).map(
        lambda symbols: Typed(
            {"type": "enum", "name": f"e{next(_numbers)}", "symbols": symbols}, st.sampled_from(symbols)
        )
    )
    return fixed | enum | st.dictionaries(_NAMES, inner, max_size=3).map(_record)


def _record(parts: dict[str, Typed]) -> Typed:
    return Typed(
        {
            "type": "record",
            "name": f"r{next(_numbers)}",
            "fields": [field(name, part.schema) for name, part in parts.items()],
        },
        st.fixed_dictionaries({name: part.values for name, part in parts.items()}),
    )


def _within(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(
            lambda part: Typed({"type": "array", "items": part.schema}, st.lists(part.values, max_size=3))
        ),
        inner.map(
            lambda part: Typed(
                {"type": "map", "values": part.schema}, st.dictionaries(_TEXT, part.values, max_size=3)
            )
        ),
        inner.filter(lambda part: not isinstance(part.schema, list)).map(
            lambda part: Typed(["null", part.schema], st.none() | part.values)
        ),
        _named(inner),
    )


UNIONS = st.just(
    Typed(["null", "boolean", "long", "string"], st.none() | st.booleans() | st.integers(0, 9) | _TEXT)
)
TYPES = st.recursive(st.sampled_from(LEAVES) | UNIONS, _within, max_leaves=6)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_NAMES, TYPES, min_size=1, max_size=4), st.data())
def test_json_and_avro_decode_to_the_same_values(parts: dict[str, Typed], data: st.DataObject) -> None:
    contract = contract_of(*(field(name, part.schema) for name, part in parts.items()))
    payload = data.draw(st.fixed_dictionaries({name: part.values for name, part in parts.items()}))
    as_json = contract.read(contract.body(payload), JSON_TYPE)
    as_avro = contract.read(contract.avro_body(payload), AVRO_TYPE)
    assert as_json == as_avro
    assert repr(as_json) == repr(as_avro)
    assert list(as_json) == list(parts)
