"""`tellonce clock …`: the one source of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import psycopg
import typer

from connectors.postgres import clock
from deploy.cli import session
from deploy.cli.options import Json, examples, instant, span
from deploy.cli.output import answer, emit, moment
from producers.clock import time
from schemas.clock import ClockReading

app = typer.Typer(help="The platform's clock: what it shows, how fast it runs.")

Change = Callable[[psycopg.Connection[Any]], ClockReading]


@app.command(epilog=examples("tellonce clock show", "tellonce clock show --json"))
def show(json: Json = False) -> None:
    """What the clock shows now, and how it relates to real time."""
    with session.reader() as conn:
        reading, real = clock.read_at(conn)
    _tell(reading, real, json=json)


@app.command(
    "set",
    epilog=examples(
        "tellonce clock set --by 2h",
        "tellonce clock set --at 2026-12-24T18:00:00Z --rate 60",
        "tellonce clock set --real",
    ),
)
def set_(
    by: Annotated[str | None, typer.Option(help="Move it on by so much, as 30m or -2d.")] = None,
    at: Annotated[str | None, typer.Option(help="Let it show this instant now.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="So many times as fast as real time; 0 stands still.")
    ] = None,
    real: Annotated[bool, typer.Option("--real", help="Back to real time.")] = False,
    json: Json = False,
) -> None:
    """Move the clock or change its pace. Held tenants stay where they are."""
    changes = _changes(by, at, rate, real=real)
    with session.owner() as conn, conn.transaction():
        for change in changes:
            change(conn)
    with session.owner() as conn:
        reading, now = clock.read_at(conn)
    _tell(reading, now, json=json)


def _changes(by: str | None, at: str | None, rate: float | None, *, real: bool) -> list[Change]:
    """In the order they are made: where to, then how fast from there."""
    if sum((by is not None, at is not None, real)) > 1:
        raise typer.BadParameter("give one of --by, --at and --real")
    changes: list[Change] = []
    if by is not None:
        forward = span(by)
        changes.append(lambda conn: time.move(conn, forward))
    if at is not None:
        shown = instant(at)
        changes.append(lambda conn: time.show(conn, shown))
    if real:
        changes.append(time.reset)
    if rate is not None:
        pace = rate
        changes.append(lambda conn: time.pace(conn, pace))
    if not changes:
        raise typer.BadParameter("nothing to set: --by, --at, --rate or --real")
    return changes


def _tell(reading: ClockReading, real: datetime, *, json: bool) -> None:
    now = reading.now(real)
    if json:
        emit({"now": now, "real": real, "rate": reading.rate, "ahead_s": (now - real).total_seconds()})
        return
    if reading.is_real:
        answer(f"{moment(now)}, real time")
    else:
        answer(f"{moment(now)} at {reading.rate:g} times real time; really it is {moment(real)}")
