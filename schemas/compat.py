"""Whether a schema can read what another wrote: Avro's schema resolution, with the reasons in words.

Backward compatibility is this for reader = new, writer = old; transitive is this for every recorded writer.
"""

from __future__ import annotations

from typing import Any

_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def incompatibilities(reader: Any, writer: Any) -> list[str]:
    """Why `reader` cannot read what `writer` wrote, each with the path of the field; empty when it can."""
    return _compare(reader, writer, "")


def _kind(schema: Any) -> str:
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else str(schema["type"])


def _compare(reader: Any, writer: Any, path: str) -> list[str]:
    where = path or "the record"
    if isinstance(writer, list):
        return [reason for branch in writer for reason in _compare(reader, branch, path)]
    if isinstance(reader, list):
        if any(not _compare(branch, writer, path) for branch in reader):
            return []
        return [f"{where}: {_kind(writer)} is no longer among {[_kind(branch) for branch in reader]}"]
    new, old = _kind(reader), _kind(writer)
    if new != old:
        if new in _PROMOTIONS.get(old, set()):
            return []
        return [f"{where}: was {old}, is {new}"]
    if _logical(reader) != _logical(writer):
        return [f"{where}: was {_logical(writer) or old}, is {_logical(reader) or new}"]
    match new:
        case "record":
            return _records(reader, writer, path)
        case "enum":
            gone = sorted(set(writer["symbols"]) - set(reader["symbols"]))
            return (
                [f"{where}: symbols {gone} are gone and no default stands in"]
                if gone and "default" not in reader
                else []
            )
        case "array":
            return _compare(reader["items"], writer["items"], f"{path}[]")
        case "map":
            return _compare(reader["values"], writer["values"], f"{path}{{}}")
        case "fixed":
            return (
                []
                if reader["size"] == writer["size"]
                else [f"{where}: was {writer['size']} bytes, is {reader['size']}"]
            )
        case _:
            return []


def _logical(schema: Any) -> str | None:
    return schema.get("logicalType") if isinstance(schema, dict) else None


def _records(reader: Any, writer: Any, path: str) -> list[str]:
    if reader["name"].rpartition(".")[2] != writer["name"].rpartition(".")[2]:
        return [f"{path or 'the record'}: was named {writer['name']}, is {reader['name']}"]
    old = {item["name"]: item for item in writer["fields"]}
    problems: list[str] = []
    for item in reader["fields"]:
        inner = f"{path}.{item['name']}" if path else item["name"]
        written = next((old[name] for name in (item["name"], *item.get("aliases", ())) if name in old), None)
        if written is not None:
            problems += _compare(item["type"], written["type"], inner)
        elif "default" not in item:
            problems.append(f"{inner}: is new and has no default, so older bodies have no value for it")
    return problems
