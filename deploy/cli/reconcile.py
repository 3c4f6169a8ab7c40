"""`tellonce reconcile`: one round of the reconciler, now."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry

from connectors.kafka.offsets import end_offsets
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.options import INSTALLATION, Json, examples
from deploy.cli.output import answer, emit, say
from producers.clock.books import Books
from producers.clock.decide import Round, Sweep
from producers.clock.reconcile import Reconciler
from producers.clock.signals import ClockMetrics

app = typer.Typer()


@app.command(rich_help_panel=INSTALLATION, epilog=examples("tellonce reconcile", "tellonce reconcile --full"))
def reconcile(
    full: Annotated[
        bool, typer.Option("--full", help="Every row there is, not only the recent ones.")
    ] = False,
    json: Json = False,
) -> None:
    """Find what capture lost, and send it again.

    A clock does this all the time; here it is done now. Exit 1 when something was lost, 75 without a verdict.
    """
    with session.reader() as conn:
        books = Books(conn)
        ends = partial(end_offsets, session.kafka_admin())
        say("waiting until capture and the groups have passed this moment")
        done = Reconciler(books, ends, ClockMetrics(CollectorRegistry())).round(Sweep.FULL if full else None)
        if done is None and full:
            books.owe_full()
    if done is None:
        say("a clock is at it" + ("; its next round looks at everything" if full else ""))
        raise typer.Exit(Exit.TEMPORARY)
    if json:
        emit(_as_json(done))
    else:
        answer(_in_words(done))
    if done.unanswered:
        raise typer.Exit(Exit.TEMPORARY)
    if done.lost:
        raise typer.Exit(Exit.PROBLEMS)


def _as_json(done: Round) -> dict[str, object]:
    return {
        "end": done.end,
        "sweep": done.sweep,
        "noted_at": done.noted_at,
        "undecided": done.undecided,
        "lost": done.lost,
        "resent": done.resent,
        "gave_up": done.gave_up,
        "unanswered": sorted(done.unanswered),
        "behind": done.behind,
    }


def _in_words(done: Round) -> str:
    if done.unanswered:
        return f"no verdict: {', '.join(sorted(done.unanswered))} did not answer in time"
    if done.lost:
        return (
            f"{done.lost} rows were lost: {done.resent} sent again, {done.gave_up} given up as dead letters"
        )
    return f"complete: {done.undecided} rows were on their way, none is lost"
