"""Make the slot anew and let the connector stream from it, forgetting where the old one stood.

Whatever committed while there was no slot is not captured by this. It is still in the outbox: the reconciler
finds it there without decisions and sends it again, which is why a full sweep is asked for, before anything
is touched and again when it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from psycopg import Connection

from connectors.debezium.client import ConnectClient, ConnectRefused, State
from connectors.debezium.slot import QUERIES, Slot, read_slot

STOPPED_WITHIN_S: Final = 30.0
"""A task ends within a second; one that is stuck Connect gives up after five, and reports it."""
SLOT_WITHIN_S: Final = 30.0
"""A slot is made once every transaction that is open now has ended; longer ones are waited for elsewhere."""
POLL_S: Final = 0.05


class RebuildError(Exception):
    """A step did not come to its end. Doing the whole again is right: every step may be repeated."""


def rebuild(
    connect: ConnectClient,
    conn: Connection[Any],
    name: str,
    slot: str,
    *,
    replication: Callable[[], Connection[Any]],
) -> Slot | None:
    """Returns the new slot, or None when it is not there yet: long transactions delay its making.

    `conn` is the supervisor's, in autocommit. `replication` opens a connection that may drop a slot (one
    whose WAL is lost; any other is left to whoever holds it); it is called only then. Should this process
    die on the way, the next one finds the connector stopped without a position and resumes it.
    """
    owe_full_sweep(conn)
    stop(connect, name)
    _drop_if_lost(conn, slot, replication)
    _forget(connect, name)
    connect.resume(name)
    made = _await_slot(conn, slot)
    owe_full_sweep(conn)
    return made


def owe_full_sweep(conn: Connection[Any]) -> None:
    """Ask the reconciler for a look at the whole outbox; it stays owed until one ends with a verdict."""
    conn.execute(QUERIES.owe_full_sweep)


def stop(connect: ConnectClient, name: str) -> None:
    """Stop the connector and wait until it has no task left."""
    connect.stop(name)
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while True:
        status = connect.status(name)
        if status.state is State.STOPPED and not status.tasks:
            return
        if time.monotonic() > deadline:
            raise RebuildError(f"connector {name} was asked to stop {STOPPED_WITHIN_S:.0f} s ago and has not")
        time.sleep(POLL_S)


def _drop_if_lost(conn: Connection[Any], slot: str, replication: Callable[[], Connection[Any]]) -> None:
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while (found := read_slot(conn, slot)) is not None and found.is_lost:
        if time.monotonic() > deadline:
            raise RebuildError(f"slot {slot} is lost and could not be dropped: somebody holds it")
        with replication() as dropping:
            dropping.execute(QUERIES.drop_slot, {"slot": slot})
        time.sleep(POLL_S)


def _forget(connect: ConnectClient, name: str) -> None:
    """Connect may refuse for a moment after the stop, until it has seen the task's producer end."""
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while True:
        try:
            connect.forget_offsets(name)
        except ConnectRefused as refused:
            if time.monotonic() > deadline:
                raise RebuildError(str(refused)) from refused
            time.sleep(POLL_S)
        else:
            return


def _await_slot(conn: Connection[Any], slot: str) -> Slot | None:
    deadline = time.monotonic() + SLOT_WITHIN_S
    while (found := read_slot(conn, slot)) is None and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return found
