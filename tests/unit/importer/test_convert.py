"""Cells become the values that a contract's field asks for."""

from __future__ import annotations

import pytest

from producers.importer.convert import converter


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
        ({"type": "long", "logicalType": "timestamp-millis"}, "5", 5),
        ({"type": "enum", "symbols": ["A"], "name": "e"}, "A", "A"),
        ({"type": "array", "items": "int"}, [1], [1]),
    ],
)
def test_each_type(avro_type: object, cell: object, value: object) -> None:
    assert converter(avro_type)(cell) == value


@pytest.mark.parametrize(
    ("avro_type", "cell"),
    [("int", "1.5"), ("int", True), ("double", "x"), ("boolean", "maybe"), ("string", None), ("string", [])],
)
def test_what_does_not_fit_is_refused(avro_type: object, cell: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        converter(avro_type)(cell)
