"""The capture supervisor's single step: look, tell, and do the one thing that helps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from psycopg import Connection, Error

from connectors.debezium.backoff import Backoff
from connectors.debezium.client import ConnectClient, ConnectError, UnknownConnector
from connectors.debezium.config import NAME, PUBLICATION, SLOT
from connectors.debezium.diagnose import (
    LOSSES,
    Alarm,
    Diagnosis,
    Observed,
    Remedy,
    diagnose,
    needs_stored_position,
)
from connectors.debezium.rebuild import RebuildError, owe_full_sweep, rebuild
from connectors.debezium.signals import Action, CaptureMetrics
from connectors.debezium.slot import CaptureAge, Slot, Stream, read_slot, read_stream
from connectors.logging import get_logger

_log = get_logger(__name__)

REMIND_S: Final = 60.0
"""An alarm that lasts is logged again: whoever reads the last minutes must see it."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Which connector and slot."""

    connector: str = NAME
    slot: str = SLOT


@dataclass(slots=True)
class Alarms:
    """Which alarms last, and when they were last told. `lasting` may be read by any thread."""

    metrics: CaptureMetrics
    lasting: frozenset[Alarm] = frozenset()
    told: dict[Alarm, float] = field(default_factory=dict)

    def show(self, lasting: frozenset[Alarm], now: float, detail: str) -> None:
        """Metric and log follow what lasts now."""
        for alarm in sorted(lasting):
            if alarm not in self.told:
                self.metrics.alarm.labels(alarm).set(1)
                self.metrics.alarms.labels(alarm).inc()
            if now - self.told.get(alarm, float("-inf")) >= REMIND_S:
                self.told[alarm] = now
                _log.error(Action.ALARM, alarm=alarm, detail=detail or None)
        for alarm in sorted(self.told.keys() - lasting):
            del self.told[alarm]
            self.metrics.alarm.labels(alarm).set(0)
            _log.info(Action.OVER, alarm=alarm)
        self.lasting = lasting


class Supervisor:
    """Watches one connector and its slot. Any number may run: every remedy may be done twice.

    Not for use by several threads at once.
    """

    def __init__(
        self,
        connect: ConnectClient,
        metrics: CaptureMetrics,
        *,
        replication: Callable[[], Connection[Any]],
        watched: Watched | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`replication` opens a connection that may drop a lost slot; called only for that."""
        self._connect = connect
        self._metrics = metrics
        self._replication = replication
        self._watched = watched or Watched()
        self._backoff = backoff or Backoff()
        self._alarms = Alarms(metrics)
        self._age = CaptureAge()

    @property
    def alarms(self) -> frozenset[Alarm]:
        """Those that lasted at the last step; may be read by any thread."""
        return self._alarms.lasting

    def step(self, conn: Connection[Any]) -> Diagnosis:
        """Look once and act once; blocks for as long as a rebuild takes, seconds.

        `conn` is in autocommit. Raises psycopg.Error when the database is away: call `database_away` then.
        """
        now = time.monotonic()
        slot = read_slot(conn, self._watched.slot)
        stream = read_stream(conn, PUBLICATION)
        self._age.mark(stream.position, now)
        age = self._age.age(slot.confirmed if slot else None, now)
        self._metrics.show_slot(slot)
        self._metrics.age.set(age)
        try:
            seen = observe(self._connect, self._watched.connector, slot, stream, age)
        except (
            ConnectError
        ) as away:  # one that refuses us too: whoever mends it must hear of it, and we go on
            self._metrics.show_connector(None)
            self._backoff.trouble()
            self._alarms.show(frozenset({Alarm.CONNECT_AWAY}), now, str(away))
            return Diagnosis(self.alarms, Remedy.NOTHING, str(away))
        self._metrics.show_connector(seen.status)
        found = diagnose(seen)
        if (self.alarms ^ found.alarms) & LOSSES:
            owe_full_sweep(conn)
        self._alarms.show(found.alarms, now, found.cause)
        self._act(conn, found, now)
        return found

    def database_away(self, why: str) -> None:
        """Nothing can be seen: say so, and let no old value stand."""
        self._metrics.show_slot(None)
        self._metrics.age.set(float("nan"))
        self._backoff.trouble()
        self._alarms.show(frozenset({Alarm.DATABASE_AWAY}), time.monotonic(), why)

    def _act(self, conn: Connection[Any], found: Diagnosis, now: float) -> None:
        if found.remedy is Remedy.NOTHING:
            if found.alarms:
                self._backoff.trouble()
            else:
                self._backoff.well(now)
            return
        if not self._backoff.due(now):
            return
        pause = self._backoff.tried(now)
        try:
            self._do(conn, found)
        except (ConnectError, RebuildError, Error) as error:
            self._metrics.remedies_failed.labels(found.remedy).inc()
            _log.error(Action.REMEDY_FAILED, remedy=found.remedy, detail=str(error).strip(), again_in_s=pause)
        else:
            self._metrics.remedies.labels(found.remedy).inc()

    def _do(self, conn: Connection[Any], found: Diagnosis) -> None:
        name, slot = self._watched.connector, self._watched.slot
        match found.remedy:
            case Remedy.RESTART:
                self._connect.restart(name, only_failed=True)
                _log.warning(Action.RESTARTED, tries=self._backoff.tries, detail=found.cause)
            case Remedy.REBUILD:
                _log.error(Action.REBUILDING, alarms=sorted(found.alarms), detail=found.cause)
                made = rebuild(self._connect, conn, name, slot, replication=self._replication)
                _log.warning(Action.REBUILT, slot_exists=made is not None)
            case Remedy.RESUME:
                self._connect.resume(name)
                _log.warning(Action.REBUILT, slot_exists=None)
            case Remedy.NOTHING:
                return
            case _:
                assert_never(found.remedy)


def observe(connect: ConnectClient, name: str, slot: Slot | None, stream: Stream, age_s: float) -> Observed:
    """Read the connector beside a slot that was read before it. Raises ConnectError."""
    stored = None
    try:
        status = connect.status(name)
        if needs_stored_position(status, slot):
            stored = stored_position(connect, name)
    except UnknownConnector:
        return Observed(None, slot, stored, age_s, stream.is_published)
    return Observed(status, slot, stored, age_s, stream.is_published)


def stored_position(connect: ConnectClient, name: str) -> int | None:
    """The end of the WAL that the connector has captured and Connect has stored, as an integer LSN."""
    positions = [
        value
        for offset in connect.offsets(name)
        for key in ("lsn", "lsn_proc", "lsn_commit")
        if isinstance(value := offset.get(key), int)
    ]
    return max(positions, default=None)
