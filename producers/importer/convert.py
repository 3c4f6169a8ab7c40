"""Turns cells into the values that an event's contract asks for, by the Avro type of the payload field."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.json_scalars import is_text_in_json

Converter = Callable[[object], object]
"""From a cell (text in CSV, a JSON value in JSON lines) to a payload value; raises ValueError saying what was
expected."""

_TRUTH = {
    "true": True,
    "t": True,
    "yes": True,
    "1": True,
    "false": False,
    "f": False,
    "no": False,
    "0": False,
}


def converter(avro_type: object) -> Converter:
    """How to read a cell for a field of this Avro type; an empty cell is null where null is allowed.

    Records, arrays and maps are taken as they come: only JSON lines can hold them. So are instants, dates and
    times, which the contract reads from text.
    """
    if isinstance(avro_type, list):
        return _optional(avro_type) if "null" in avro_type else _first_that_reads(avro_type)
    if is_text_in_json(avro_type):
        return _as_it_is
    name = avro_type.get("type") if isinstance(avro_type, Mapping) else avro_type
    if not isinstance(name, str):
        return converter(name)
    return _BY_NAME.get(name, _as_it_is)


def _optional(union: list[object]) -> Converter:
    read = _first_that_reads([branch for branch in union if branch != "null"])
    return lambda cell: None if cell is None or cell == "" else read(cell)


def _first_that_reads(branches: list[object]) -> Converter:
    readers = [converter(branch) for branch in branches]

    def read(cell: object) -> object:
        for reader in readers[:-1]:
            try:
                return reader(cell)
            except ValueError:
                continue
        return readers[-1](cell)

    return read


def _text(cell: object) -> object:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return str(cell)
    raise ValueError("expected text")


def _whole(cell: object) -> object:
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell
    if isinstance(cell, str):
        try:
            return int(cell)
        except ValueError:
            pass
    raise ValueError("expected a whole number")


def _number(cell: object) -> object:
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            pass
    raise ValueError("expected a number")


def _truth(cell: object) -> object:
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, str) and cell.strip().lower() in _TRUTH:
        return _TRUTH[cell.strip().lower()]
    raise ValueError("expected true or false")


def _as_it_is(cell: object) -> object:
    return cell


_BY_NAME: Mapping[str, Converter] = {
    "string": _text,
    "enum": _text,
    "int": _whole,
    "long": _whole,
    "float": _number,
    "double": _number,
    "boolean": _truth,
}
