"""Schemas whose bodies could outgrow their bytes, and so are refused.

The limit on a body's size bounds the work of reading it only if every nested value takes at least a byte and
nesting ends. Two shapes break that. A record that contains itself is read recursively in C, where a quarter of a
megabyte of hostile bytes overflows the stack: the process dies, comes back and dies of the same record again.
An array of values that take no bytes (null, a record without fields) says in five bytes that it has 2³⁰ items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def unbounded(schema: Any) -> list[str]:
    """What must not be in a parsed schema, each with the field that has it; empty when its bodies are bounded."""
    return list(_Search().within(schema, "", ()))


class _Search:
    """One walk over a schema; names are defined before they are used, as Avro has it."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def within(self, schema: Any, path: str, outer: tuple[str, ...]) -> Iterator[str]:
        """Problems from this part on; `outer` are the records it is inside of."""
        if isinstance(schema, list):
            for branch in schema:
                yield from self.within(branch, path, outer)
            return
        if isinstance(schema, str):
            if schema in outer:
                yield f"{path}: {schema} contains itself, so a body could nest without end; give it a depth"
            return
        if "name" in schema:
            self._named[schema["name"]] = schema
        match schema["type"]:
            case "record" | "error":
                for item in schema["fields"]:
                    inner = f"{path}.{item['name']}" if path else item["name"]
                    yield from self.within(item["type"], inner, (*outer, schema["name"]))
            case "array":
                yield from self.within(schema["items"], f"{path}[]", outer)
                if self._takes_nothing(schema["items"]):
                    yield f"{path}: its items take no bytes, so a few bytes could hold millions; use an int"
            case "map":
                yield from self.within(schema["values"], f"{path}{{}}", outer)
            case dict() | list() as inner_type:
                yield from self.within(inner_type, path, outer)
            case _:
                pass

    def _takes_nothing(self, schema: Any) -> bool:
        if isinstance(schema, str):
            known = self._named.get(schema)
            return schema == "null" if known is None else self._takes_nothing(known)
        if isinstance(schema, list):  # a union says which branch
            return False
        match schema["type"]:
            case "record" | "error":
                return all(self._takes_nothing(item["type"]) for item in schema["fields"])
            case "fixed":
                return bool(schema["size"] == 0)
            case "array" | "map" | "enum":
                return False
            case inner:
                return self._takes_nothing(inner)
