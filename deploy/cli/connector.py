"""`tellonce connector …`: Debezium, from the outbox to Kafka."""

from __future__ import annotations

from collections.abc import Callable

import typer

from connectors.debezium.apply import apply as apply_connector
from connectors.debezium.apply import describe
from connectors.debezium.client import ConnectClient
from connectors.debezium.config import NAME, ConnectorConfig
from connectors.debezium.status import CaptureStatus, read_status
from connectors.kafka.topics import topics_for
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.failures import NotConfigured
from deploy.cli.options import Json, examples
from deploy.cli.output import emit, say, show, table
from deploy.cli.waiting import until

app = typer.Typer(help="The connector that streams the outbox to Kafka.")

STREAMING_WITHIN_S = 60.0
"""A task starts within seconds; its slot is made once every transaction open at that time has ended."""


@app.command(epilog=examples("tellonce connector apply", "tellonce connector apply --no-wait"))
def apply(
    wait: bool = typer.Option(True, help="Until it reads its slot: what commits from then on is streamed."),
    json: Json = False,
) -> None:
    """Create or update the topics and the connector.

    Only where they differ: again changes nothing.
    """
    try:
        config = ConnectorConfig.from_settings(session.settings())
    except ValueError as error:
        raise NotConfigured(str(error)) from error
    topics = topics_for(session.catalogue().products)
    with session.connect_client() as connect:
        outcome = apply_connector(connect, session.kafka_admin(), config, topics)
        for name in outcome.topics.created:
            say(f"topic {name} created")
        for name in outcome.topics.altered:
            say(f"topic {name} altered")
        say(f"connector {config.name} {outcome.connector}")
        for change in outcome.changes if outcome.connector == "updated" else ():
            say(f"  {describe(change)}")
        if wait:
            _await_stream(connect)
    if json:
        emit(outcome)


@app.command(epilog=examples("tellonce connector status", "tellonce connector status --json"))
def status(json: Json = False) -> None:
    """Connector, task and replication slot; exit 1 when something is wrong with them."""
    with session.connect_client() as connect, session.reader() as conn:
        found = read_status(connect, conn)
    if json:
        emit(found.as_json())
    else:
        show(table(("capture", ""), capture_rows(found)))
    if found.alarms or not found.is_streaming:
        raise typer.Exit(Exit.PROBLEMS)


@app.command(epilog=examples("tellonce connector pause"))
def pause() -> None:
    """Capture nothing until `resume`. The WAL is kept meanwhile: do not forget it."""
    _ask(lambda connect: connect.pause(NAME), "pausing")


@app.command(epilog=examples("tellonce connector resume"))
def resume() -> None:
    """Go on from where it was paused or stopped."""
    _ask(lambda connect: connect.resume(NAME), "resuming")


@app.command(epilog=examples("tellonce connector restart", "tellonce connector restart --failed"))
def restart(failed: bool = typer.Option(False, "--failed", help="Only what failed.")) -> None:
    """Restart the connector and its task, from their stored position."""
    _ask(lambda connect: connect.restart(NAME, only_failed=failed), "restarting")


def capture_rows(found: CaptureStatus) -> list[tuple[object, object]]:
    """A status as rows for people."""
    slot, connector = found.slot, found.connector
    return [
        ("streaming", found.is_streaming),
        ("connector", connector.state.lower() if connector else "missing; `tellonce connector apply`"),
        ("tasks", [task.state.lower() for task in connector.tasks] if connector else None),
        ("slot", "missing" if slot is None else "active" if slot.active else "nobody reads it"),
        ("wal", slot.wal_status if slot else None),
        ("lag", None if slot is None or slot.lag is None else f"{slot.lag:,} bytes of WAL"),
        ("alarms", found.alarms),
        ("cause", found.cause),
    ]


def _ask(what: Callable[[ConnectClient], None], doing: str) -> None:
    with session.connect_client() as connect:
        what(connect)
    say(f"connector {NAME}: {doing}")


def _await_stream(connect: ConnectClient) -> None:
    with session.reader() as conn:
        last: list[CaptureStatus] = []

        def streams() -> bool:
            last[:] = [read_status(connect, conn)]
            return last[0].is_streaming

        if until(streams, STREAMING_WITHIN_S, every_s=0.1):
            say("it reads its slot")
            return
    held = "connector_held" in last[0].alarms
    say(f"it does not stream yet: {'paused or stopped' if held else last[0].cause or 'still starting'}")
    if not held:
        raise typer.Exit(Exit.TEMPORARY)
