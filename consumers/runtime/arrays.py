"""Arrays as parameters, in Postgres' text form.

The driver's own list dumper is a Python loop with a check per element: 2 µs each, a dozen times per event. A
batch's columns are plain text, so they are joined here; still parameters, cast by the statement, never part of it.
"""

from __future__ import annotations

from collections.abc import Sequence


def text_array(values: Sequence[str]) -> str:
    """`values` as the text of a one-dimensional array; quoted, so that `null` and the empty text are themselves."""
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1 if values else 0):
        joined = '","'.join(_escaped(value) for value in values)
    return f'{{"{joined}"}}' if values else "{}"


def nullable_array(values: Sequence[str | None]) -> str:
    """The same with None as NULL."""
    joined = ",".join(["NULL" if value is None else f'"{value}"' for value in values])
    if "\\" in joined or joined.count('"') != 2 * (len(values) - values.count(None)):
        joined = ",".join(["NULL" if value is None else f'"{_escaped(value)}"' for value in values])
    return f"{{{joined}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"') if '"' in value or "\\" in value else value
