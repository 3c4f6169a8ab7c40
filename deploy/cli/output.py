"""How things are said: results on standard output, for people or as JSON; everything else on standard error."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

WIDE = 240
"""Columns when the output is no terminal: a pipe wants whole lines."""


def emit(value: object) -> None:
    """`value` as indented JSON: dataclasses, enums, instants in UTC; bytes as text, or in base64."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(value, default=_plain, option=options).decode() + "\n")


def say(text: str) -> None:
    """What a command did, on standard error: beside the result, never in it."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def complain(text: str) -> None:
    """What went wrong, on standard error."""
    say(f"tellonce: {text}")


def answer(text: str) -> None:
    """A result of one line, for people; never broken, so that a pipe gets it whole."""
    stdout().print(printable(text), markup=False, soft_wrap=True)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that is told (done, in all); nothing where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def stdout() -> Console:
    """Standard output as it is now; wide where it is no terminal, because a pipe wants whole lines."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)


def show(renderable: RenderableType) -> None:
    """A result for people."""
    stdout().print(renderable)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Rows under headers, if any, for `show`. Cells are data: no markup and no control characters in them count."""
    grid = Table(*headers, box=SIMPLE_HEAD, pad_edge=False, show_header=any(headers))
    for row in rows:
        grid.add_row(*(Text(printable(cell(value)), overflow="fold") for value in row))
    return grid


def cell(value: object) -> str:
    """A value for people: instants in UTC to the second, nothing as a dash."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case int():
            return f"{value:,}"
        case list() | tuple() | frozenset():
            return ", ".join(map(str, value)) or "-"
        case _:
            return str(value)


def moment(at: datetime | None) -> str:
    """An instant for people: UTC, to the second; a dash for none."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def printable(text: str) -> str:
    """Without control characters: what others wrote must not steer the terminal it is shown on."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def readable(body: bytes) -> str:
    """Bytes as text where they are text, else in base64."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(body).decode()


def _plain(value: Any) -> object:
    match value:
        case bytes():
            return readable(value)
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case set() | frozenset():
            return sorted(value)
        case _:
            raise TypeError(f"{type(value).__name__} is not plain data")
