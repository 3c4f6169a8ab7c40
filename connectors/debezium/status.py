"""Connector and slot in one look, for people and for `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from connectors.debezium.client import ConnectClient, ConnectorStatus
from connectors.debezium.config import PUBLICATION
from connectors.debezium.diagnose import Alarm, diagnose
from connectors.debezium.slot import Slot, read_slot, read_stream
from connectors.debezium.supervise import Watched, observe


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """As just read. Each part is None when there is no such thing."""

    connector: ConnectorStatus | None
    slot: Slot | None
    alarms: tuple[Alarm, ...]
    cause: str

    @property
    def is_streaming(self) -> bool:
        """The task runs and reads the slot."""
        return (
            self.connector is not None
            and self.connector.is_streaming
            and bool(self.slot and self.slot.active)
        )

    def as_json(self) -> dict[str, object]:
        """Plain data under names that stay."""
        return {
            "streaming": self.is_streaming,
            "connector": self.connector
            and {
                "name": self.connector.name,
                "state": self.connector.state.lower(),
                "tasks": [
                    {"task": task.number, "state": task.state.lower()} for task in self.connector.tasks
                ],
            },
            "slot": self.slot
            and {
                "active": self.slot.active,
                "wal_status": self.slot.wal_status,
                "lag_bytes": self.slot.lag,
                "retained_bytes": self.slot.retained,
                "safe_bytes": self.slot.safe,
            },
            "alarms": list(self.alarms),
            "cause": self.cause,
        }


def read_status(
    connect: ConnectClient, conn: Connection[Any], watched: Watched | None = None
) -> CaptureStatus:
    """Read both, the slot first. Raises ConnectError (Connect away) and psycopg.Error."""
    which = watched or Watched()
    slot = read_slot(conn, which.slot)
    stream = read_stream(conn, PUBLICATION)
    seen = observe(connect, which.connector, slot, stream, age_s=0.0)  # a single look knows of no age
    found = diagnose(seen)
    return CaptureStatus(seen.status, slot, tuple(sorted(found.alarms)), found.cause)
