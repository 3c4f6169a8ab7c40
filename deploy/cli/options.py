"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import inspect
from datetime import datetime, timedelta
from typing import Annotated

import typer
from rich.markup import escape

from schemas.durations import InvalidDurationError, parse_duration

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for machines.")]
TenantArgument = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.", show_default=False)]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")]


def instant(text: str) -> datetime:
    """An instant with its zone, such as `2026-12-01T09:00:00Z`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise typer.BadParameter(f"{text!r} is no instant; write it with its zone: 2026-12-01T09:00:00Z")
    return at


def span(text: str) -> timedelta:
    """A duration such as `15m` or `2d`, with a minus for backwards."""
    try:
        value = parse_duration(text.removeprefix("-"))
    except InvalidDurationError as error:
        raise typer.BadParameter(str(error)) from error
    return -value if text.startswith("-") else value


def pairs(given: list[str], option: str) -> dict[str, str]:
    """`name=value` options as a map; a name that comes twice is refused."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name and value):
            raise typer.BadParameter(f"{text!r}: write name=value", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"{name} is given twice", param_hint=option)
        found[name] = value
    return found


def examples(*lines: str) -> str:
    """The end of a command's help: each line as it is typed."""
    return "[bold]Examples[/]\n\n" + "\n\n".join(f"$ {escape(line)}" for line in lines)


def flowing(app: typer.Typer) -> typer.Typer:
    """`app`, its commands' help a line per paragraph: the terminal's width breaks it, not the source's."""
    for command in app.registered_commands:
        paragraphs = (command.help or inspect.getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return app


LOCAL = "The stack on this machine"
INSTALLATION = "The installation"
LOOKING = "Looking at it"
"""The three panels of `tellonce --help`."""
