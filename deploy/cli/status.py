"""`tellonce status`: the whole pipeline in one look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from deploy.cli import overview
from deploy.cli.options import LOOKING, Json, examples
from deploy.cli.output import emit, moment, printable, show, table
from deploy.cli.overview import Completeness, Messages, Overview
from deploy.local import commands
from deploy.local.running import Component

app = typer.Typer()


@app.command(
    rich_help_panel=LOOKING, epilog=examples("tellonce status", "tellonce status --json | jq .problems")
)
def status(json: Json = False) -> None:
    """The whole pipeline in one look.

    Stack, connector, lag of each group, completeness, live nudges, deliveries by channel and state, dead letters.
    Exit 1 when something needs a person, 69 or 78 when something could not be asked; that hides nothing else.
    """
    found = overview.look()
    stack: Mapping[Component, bool] = commands.state().alive if commands.ROOT.exists() else {}
    found.problems += [
        f"{name} of the local stack is dead: `make up`" for name, runs in stack.items() if not runs
    ]
    if json:
        emit({"stack": stack, **_as_json(found)})
    else:
        show(_rendered(found, stack))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _as_json(found: Overview) -> dict[str, object]:
    return {
        "now": found.now,
        "clock_rate": found.clock_rate,
        "tenants": found.tenants,
        "capture": found.capture,
        "groups": found.lag,
        "completeness": found.completeness,
        "nudges": found.nudges,
        "deliveries": found.deliveries,
        "dead_letters": found.dead_letters,
        "problems": found.problems,
    }


def _rendered(found: Overview, stack: Mapping[Component, bool]) -> RenderableType:
    engines = ", ".join(f"{name} {'runs' if alive else 'is dead'}" for name, alive in stack.items())
    capture = found.capture or {}
    rows: list[tuple[object, object]] = [
        ("local stack", engines or "none"),
        ("clock", _clock(found)),
        ("tenants", _counted(found.tenants)),
        ("capture", ("streams" if capture.get("streaming") else "does not stream") if capture else None),
        *((f"group {lag.group}", f"{lag.behind:,} records behind") for lag in found.lag or ()),
        ("completeness", _complete(found.completeness)),
        *((f"nudges of {n.product}", f"{n.live:,} live, {n.due:,} of them due") for n in found.nudges),
        *((f"deliveries on {channel}", said) for channel, said in _messages(found.deliveries).items()),
        ("open dead letters", sum(dead.open for dead in found.dead_letters) if found.now else None),
    ]
    problems = [Text.assemble(("! ", "bold red"), printable(problem)) for problem in found.problems]
    return Group(table(("", ""), rows), *problems)


def _clock(found: Overview) -> str | None:
    if found.now is None:
        return None
    return moment(found.now) + (f" at {found.clock_rate:g} times real time" if found.clock_rate != 1 else "")


def _messages(deliveries: Iterable[Messages]) -> Mapping[str, str]:
    """By channel: how many in each state, and since when something is due."""
    said: dict[str, list[str]] = {}
    for each in deliveries:
        due = f" ({each.due:,} of them due, the first since {moment(each.oldest_due_at)})" if each.due else ""
        said.setdefault(each.channel, []).append(f"{each.count:,} {each.state}{due}")
    return {channel: ", ".join(states) for channel, states in said.items()}


def _counted(tenants: Mapping[str, int]) -> str | None:
    if not tenants:
        return None
    return f"{tenants['all']:,}, {tenants['suspended']:,} suspended, {tenants['held']:,} held"


def _complete(seen: Completeness | None) -> str | None:
    if seen is None or seen.round_at is None:
        return None
    owed = "; a full sweep is owed" if seen.full_owed else ""
    return (
        f"looked {moment(seen.round_at)}, {seen.undecided:,} undecided then; last full verdict"
        f" {moment(seen.answered_at)}; {seen.lost_ever:,} ever lost{owed}"
    )
