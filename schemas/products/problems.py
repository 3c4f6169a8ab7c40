"""What is wrong with a product folder, and on which line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

PRODUCT_FILE = "product.yaml"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong: where, and what would be right. `line` counts from 1; 0 is the whole file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


class Lines:
    """Which line of a YAML text a path is on; the nearest that exists for one that does not."""

    def __init__(self, node: yaml.Node | None) -> None:
        self._root = node

    def of(self, path: tuple[int | str, ...]) -> int:
        """The line of a path of keys and indexes, from 1."""
        node, line = self._root, 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line

    def duplicates(self) -> Iterator[tuple[int, str]]:
        """Keys that a mapping has twice, of which YAML's reader would silently keep the last."""
        yield from _duplicates(self._root)


def _child(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line + 1, value
    return None


def _duplicates(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key.value, str):
                if key.value in seen:
                    yield key.start_mark.line + 1, key.value
                seen.add(key.value)
            yield from _duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _duplicates(value)


def line_of(body: bytes, text: str) -> int:
    """The first line of a file that has the text, 0 when none has."""
    for number, line in enumerate(body.decode("utf-8", "replace").splitlines(), start=1):
        if text in line:
            return number
    return 0
