"""Whether a schema can read what another wrote: Avro's schema resolution, with the reasons in words.

Backward compatibility is this for reader = new, writer = old; transitive is this for every recorded writer.
Bodies may be JSON as well, so it is stricter than Avro in one thing: text does not become bytes or the reverse,
for in JSON bytes are base64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
}


def incompatibilities(reader: Any, writer: Any) -> list[str]:
    """Why `reader` cannot read what `writer` wrote, each with the path of the field; empty when it can.

    Both are parsed schemas, in which every name is a full one.
    """
    return _Comparison(dict(_named(reader)), dict(_named(writer))).compare(reader, writer, "")


def _named(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        for branch in schema:
            yield from _named(branch)
    elif isinstance(schema, dict):
        if "name" in schema:
            yield schema["name"], schema
        for item in schema.get("fields", ()):
            yield from _named(item["type"])
        for part in ("items", "values"):
            yield from _named(schema.get(part))


def _kind(schema: Any) -> str:
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else str(schema["type"])


def _logical(schema: Any) -> str | None:
    return schema.get("logicalType") if isinstance(schema, dict) else None


class _Comparison:
    """One comparison; pairs of records that it is inside of are taken as compatible, or it would not end."""

    def __init__(self, reader_names: dict[str, Any], writer_names: dict[str, Any]) -> None:
        self._reader_names, self._writer_names = reader_names, writer_names
        self._inside: set[tuple[str, str]] = set()

    def compare(self, reader: Any, writer: Any, path: str) -> list[str]:
        """Why, from this part on."""
        where = path or "the record"
        if isinstance(reader, str):
            reader = self._reader_names.get(reader, reader)
        if isinstance(writer, str):
            writer = self._writer_names.get(writer, writer)
        if isinstance(writer, list):
            return [reason for branch in writer for reason in self.compare(reader, branch, path)]
        if isinstance(reader, list):
            return self._into_union(reader, writer, path)
        new, old = _kind(reader), _kind(writer)
        if _logical(reader) != _logical(writer):
            return [f"{where}: was {_logical(writer) or old}, is {_logical(reader) or new}"]
        if new != old:
            return [] if new in _PROMOTIONS.get(old, set()) else [f"{where}: was {old}, is {new}"]
        if new in ("record", "enum", "fixed"):
            was, named = writer["name"], reader["name"]
            if was.rpartition(".")[2] != named.rpartition(".")[2]:
                return [f"{where}: was named {was}, is {named}"]
        if _logical(reader) == "decimal" and _digits(reader) != _digits(writer):
            return [f"{where}: was a decimal of {_digits(writer)}, is of {_digits(reader)}"]
        match new:
            case "record":
                return self._records(reader, writer, path)
            case "enum":
                gone = sorted(set(writer["symbols"]) - set(reader["symbols"]))
                if gone and "default" not in reader:
                    return [f"{where}: symbols {gone} are gone and no default stands in"]
                return []
            case "array":
                return self.compare(reader["items"], writer["items"], f"{path}[]")
            case "map":
                return self.compare(reader["values"], writer["values"], f"{path}{{}}")
            case "fixed" if reader["size"] != writer["size"]:
                return [f"{where}: was {writer['size']} bytes, is {reader['size']}"]
            case _:
                return []

    def _into_union(self, reader: list[Any], writer: Any, path: str) -> list[str]:
        found = [self.compare(branch, writer, path) for branch in reader]
        if not all(found):
            return []
        same = [
            reasons
            for branch, reasons in zip(reader, found, strict=True)
            if _kind(branch) == _kind(writer) and _kind(writer) == "record"
        ]
        if len(same) == 1:  # the reason inside says more than that no branch fits
            return same[0]
        kinds = ", ".join(_kind(branch) for branch in reader)
        return [f"{path or 'the record'}: was {_logical(writer) or _kind(writer)}, is one of {kinds}"]

    def _records(self, reader: Any, writer: Any, path: str) -> list[str]:
        pair = (reader["name"], writer["name"])
        if pair in self._inside:
            return []
        self._inside.add(pair)
        old = {item["name"]: item for item in writer["fields"]}
        problems: list[str] = []
        for item in reader["fields"]:
            inner = f"{path}.{item['name']}" if path else item["name"]
            names = (item["name"], *item.get("aliases", ()))
            written = next((old[name] for name in names if name in old), None)
            if written is not None:
                problems += self.compare(item["type"], written["type"], inner)
            elif "default" not in item:
                problems.append(f"{inner}: is new and has no default, so older bodies have no value for it")
        self._inside.discard(pair)
        return problems


def _digits(schema: Any) -> str:
    return f"{schema['precision']} digits, {schema.get('scale', 0)} behind the point"
