"""Cells become the values that a contract's field asks for."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from producers.importer.convert import converter
from schemas.avro import Writers, parse
from schemas.codec import EventContract

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("avro_type", "cell", "value"),
    [
        ("string", "a", "a"),
        ("string", 7, "7"),
        ("int", "7", 7),
        ("long", 7, 7),
        ("double", "1.5", 1.5),
        ("float", 2, 2.0),
        ("boolean", " True ", True),
        ("boolean", "0", False),
        ("boolean", True, True),
        (["null", "string"], "", None),
        (["null", "string"], None, None),
        (["null", "int"], "3", 3),
        (["long", "string"], "x", "x"),
        ({"type": "long", "logicalType": "duration-of-ours"}, "5", 5),
        ({"type": "enum", "symbols": ["A"], "name": "e"}, "A", "A"),
        ({"type": "array", "items": "int"}, [1], [1]),
    ],
)
def test_each_type(avro_type: object, cell: object, value: object) -> None:
    assert converter(avro_type)(cell) == value


@pytest.mark.parametrize(
    ("avro_type", "cell", "value"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-12-01T09:00:00Z", AT),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], "2026-12-01T10:00:00+01:00", AT),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], "", None),
        ({"type": "int", "logicalType": "date"}, "2026-12-01", date(2026, 12, 1)),
        ({"type": "int", "logicalType": "time-millis"}, "09:30:00", time(9, 30)),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            "12.50",
            Decimal("12.50"),
        ),
        ({"type": "string", "logicalType": "uuid"}, str(UUID(int=7)), UUID(int=7)),
    ],
)
def test_what_json_says_in_text_reaches_the_contract_as_text(
    avro_type: object, cell: object, value: object
) -> None:
    schema = parse({"type": "record", "name": "happened", "fields": [{"name": "field", "type": avro_type}]})
    contract = EventContract("log.happened", schema, Writers(schema, {}))
    payload = {"field": converter(contract.fields["field"])(cell)}
    assert contract.accept(payload) == {"field": value}
    assert contract.read(contract.body(payload), b"application/json") == {"field": value}


@pytest.mark.parametrize(
    ("avro_type", "cell"),
    [("int", "1.5"), ("int", True), ("double", "x"), ("boolean", "maybe"), ("string", None), ("string", [])],
)
def test_what_does_not_fit_is_refused(avro_type: object, cell: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        converter(avro_type)(cell)
