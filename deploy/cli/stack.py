"""`tellonce up|down|reset`: the local stack."""

from __future__ import annotations

import typer

from deploy.cli.options import LOCAL, Json, examples
from deploy.cli.output import emit, say, show, table
from deploy.local import commands
from deploy.local.running import Component

app = typer.Typer()


@app.command(rich_help_panel=LOCAL, epilog=examples("tellonce up", "tellonce up --json"))
def up(json: Json = False) -> None:
    """Start PostgreSQL, Kafka and Kafka Connect here, and leave them running.

    Data of the last time is kept. One that runs already is left as it is.
    """
    outcome = commands.up(progress=say)
    if json:
        emit(outcome)
        return
    show(
        table(
            ("engine", "", "where"),
            (
                ("postgres", _alive(outcome, "postgres"), f"{outcome.settings_file} has its addresses"),
                ("kafka", _alive(outcome, "kafka"), outcome.kafka_bootstrap),
                ("connect", _alive(outcome, "connect"), outcome.connect_url),
            ),
        )
    )
    say("next: `tellonce migrate`, `tellonce connector apply`, `tellonce run --all`")


@app.command(rich_help_panel=LOCAL, epilog=examples("tellonce down"))
def down(json: Json = False) -> None:
    """Stop what `up` started; data stays."""
    outcome = commands.down(progress=say)
    if json:
        emit(outcome)
    else:
        say("stopped" if outcome.changed else "nothing was running")


@app.command(rich_help_panel=LOCAL, epilog=examples("tellonce reset"))
def reset(json: Json = False) -> None:
    """Stop the local stack and delete its data, logs and passwords.

    Asks nothing: the data is this machine's alone.
    """
    outcome = commands.reset(progress=say)
    if json:
        emit(outcome)
    else:
        say("deleted" if outcome.changed else "there was nothing to delete")


def _alive(outcome: commands.Outcome, engine: Component) -> str:
    return "runs" if outcome.alive.get(engine) else "does not run"
