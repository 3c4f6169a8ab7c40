"""`tellonce connector …`: Debezium, from the outbox to Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from connectors.debezium.apply import apply as apply_connector
from connectors.debezium.apply import describe
from connectors.debezium.client import ConnectClient, ConnectorStatus, State
from connectors.debezium.config import NAME, ConnectorConfig
from connectors.debezium.diagnose import Alarm
from connectors.debezium.status import CaptureStatus, read_status
from deploy.cli import session
from deploy.cli.alarms import in_words
from deploy.cli.exits import Exit
from deploy.cli.failures import NotConfigured
from deploy.cli.options import Json, examples
from deploy.cli.output import emit, say, show, table
from deploy.cli.waiting import until

app = typer.Typer(help="The connector that streams the outbox to Kafka.")

STREAMING_WITHIN_S = 60.0
"""A task starts within seconds; its slot is made once every transaction open at that time has ended."""
RESTARTS_WITHIN_S = 1.0
"""Connect says yes to a restart some hundredths of a second before its status does: what it says then is old."""
SETTLED_WITHIN_S = 15.0
"""Connect says yes at once and does it within a second or two."""


@app.command(epilog=examples("tellonce connector apply", "tellonce connector apply --no-wait"))
def apply(
    wait: Annotated[
        bool, typer.Option(help="Until it reads its slot: what commits from then on is streamed.")
    ] = True,
    json: Json = False,
) -> None:
    """Create or update the topics and the connector.

    Only where they differ: again changes nothing.
    """
    given = session.settings()
    session.required(given, "connect_database_url")
    try:
        config = ConnectorConfig.from_settings(given)
    except ValueError as error:
        raise NotConfigured(str(error)) from error
    topics = session.topics()
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
    _ask(lambda connect: connect.pause(NAME), _is_paused, "paused; `tellonce connector resume` goes on")


@app.command(epilog=examples("tellonce connector resume"))
def resume() -> None:
    """Go on from where it was paused or stopped."""
    _ask(lambda connect: connect.resume(NAME), _runs, "runs")


@app.command(epilog=examples("tellonce connector restart", "tellonce connector restart --failed"))
def restart(failed: Annotated[bool, typer.Option("--failed", help="Only what failed.")] = False) -> None:
    """Restart the connector and its task, from their stored position."""

    def ask(connect: ConnectClient) -> None:
        connect.restart(NAME, only_failed=failed)
        time.sleep(RESTARTS_WITHIN_S)

    _ask(ask, _runs, "runs")


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
        ("alarms", "\n".join(map(in_words, found.alarms))),
        ("cause", found.cause),
    ]


def _ask(
    what: Callable[[ConnectClient], None], arrived: Callable[[ConnectorStatus], bool], told: str
) -> None:
    """Ask for it and wait until it is so. A task that has failed may be on its way back: the end counts."""
    with session.connect_client() as connect:
        what(connect)
        if until(lambda: arrived(connect.status(NAME)), SETTLED_WITHIN_S, every_s=0.1):
            say(f"connector {NAME} {told}")
            return
        last = connect.status(NAME)
    if last.has_failed:
        say(f"connector {NAME} has failed: {last.why}; `tellonce connector restart --failed`")
        raise typer.Exit(Exit.PROBLEMS)
    say(f"connector {NAME} is still {last.state.lower()}; `tellonce connector status`")
    raise typer.Exit(Exit.TEMPORARY)


def _is_paused(status: ConnectorStatus) -> bool:
    """Nothing is captured any more; a task that had failed before stays so."""
    return status.state is State.PAUSED and all(task.state is not State.RUNNING for task in status.tasks)


def _runs(status: ConnectorStatus) -> bool:
    return status.is_streaming


def _await_stream(connect: ConnectClient) -> None:
    with session.reader() as conn:
        last: list[CaptureStatus] = []

        def told() -> bool:
            last[:] = [read_status(connect, conn)]
            return last[0].is_streaming or Alarm.CONNECTOR_HELD in last[0].alarms

        if not until(told, STREAMING_WITHIN_S, every_s=0.1):
            say(f"it does not stream yet: {last[0].cause or 'still starting'}")
            raise typer.Exit(Exit.TEMPORARY)
    if last[0].is_streaming:
        say("it reads its slot")
    else:
        say("it stays paused or stopped, as somebody left it; `tellonce connector resume`")
