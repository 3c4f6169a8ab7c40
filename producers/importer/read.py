"""Reads a log's rows, with where each stands, so that a complaint can name file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

import orjson

from producers.importer.spec import ImportSpec


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the log: where, what, and how to mend it."""

    file: str
    line: int
    column: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class InvalidLogError(ValueError):
    """The log cannot be imported; nothing was written. `problems` holds the first of them, `more` counts
    the rest.
    """

    def __init__(self, problems: list[Problem], more: int = 0) -> None:
        self.problems = problems
        self.more = more
        tail = [f"… and {more:,} more"] if more else []
        super().__init__("\n".join([*map(str, problems), *tail]))


@dataclass(frozen=True, slots=True)
class Row:
    """A row as read: the line it begins on and what the columns hold (text in CSV, JSON values in JSON
    lines).
    """

    line: int
    values: Mapping[str, object]


def read_rows(spec: ImportSpec) -> Iterator[Row | Problem]:
    """Every row of the log in file order; what is not a row comes as its Problem. Blank lines are nothing.

    A missing column is one problem on the header's line, and no row follows it.
    """
    with spec.path.open(encoding="utf-8-sig", newline="") as file:
        yield from (_csv_rows if spec.format == "csv" else _json_rows)(spec, file)


def _csv_rows(spec: ImportSpec, file: TextIO) -> Iterator[Row | Problem]:
    name = str(spec.path)
    reader = csv.reader(file, strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        if missing := [column for column in spec.columns if column not in header]:
            there = ", ".join(header) or "nothing"
            for column in missing:
                yield Problem(name, 1, column, f"no such column; the header has {there}")
            return
        places = [(column, header.index(column)) for column in spec.columns]
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(header):
                yield Row(line, {column: cells[place] for column, place in places})
            elif cells:
                message = f"{len(cells)} cells under a header of {len(header)}; quote what holds a comma"
                yield Problem(name, line, "-", message)
            line = reader.line_num + 1
    except csv.Error as error:
        yield Problem(name, reader.line_num, "-", f"not CSV: {error}")
    except UnicodeDecodeError as error:
        yield Problem(name, reader.line_num + 1, "-", f"not UTF-8: {error.reason}; convert the file")


def _json_rows(spec: ImportSpec, file: TextIO) -> Iterator[Row | Problem]:
    name = str(spec.path)
    line = 0
    try:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                values = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                yield Problem(name, line, str(error.colno), f"not JSON: {error.msg}")
                continue
            if isinstance(values, dict):
                yield Row(line, {column: values.get(column) for column in spec.columns})
            else:
                yield Problem(name, line, "1", "not a JSON object; every line is one object")
    except UnicodeDecodeError as error:
        yield Problem(name, line + 1, "-", f"not UTF-8: {error.reason}; convert the file")
