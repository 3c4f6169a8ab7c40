"""Every log action and metric of the capture supervisor, in one place: what is not here is not emitted.

Alarms are built on these; their meaning must not change under a name.
"""

from __future__ import annotations

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge

from connectors.debezium.client import ConnectorStatus, State
from connectors.debezium.diagnose import Alarm, Remedy
from connectors.debezium.slot import Slot


class Action(StrEnum):
    """What the supervisor logs."""

    STARTED = "capture_started"
    STOPPED = "capture_stopped"
    ALARM = "capture_alarm"
    """Something is wrong; `alarm` says what. Logged when it begins, and each minute while it lasts."""
    OVER = "capture_alarm_over"
    RESTARTED = "capture_restarted"
    """Failed tasks were told to start again."""
    REBUILDING = "capture_rebuilding"
    """The slot is gone, lost or another: it is made anew now."""
    REBUILT = "capture_rebuilt"
    """It streams again. What committed meanwhile is the reconciler's; a full sweep is owed."""
    REMEDY_FAILED = "capture_remedy_failed"
    """What was tried did not work; it is tried again later."""


WAL_STATUSES = ("reserved", "extended", "unreserved", "lost")


class CaptureMetrics:
    """The supervisor's metrics, on the registry given. What is unknown is NaN, never a stale value."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.alarm = Gauge(
            "tellonce_capture_alarm", "1 while the alarm lasts, else 0.", ["alarm"], registry=registry
        )
        self.alarms = Counter(
            "tellonce_capture_alarms",
            "Alarms that began; one that comes and goes between two scrapes shows here.",
            ["alarm"],
            registry=registry,
        )
        self.running = Gauge(
            "tellonce_connector_running", "1 when connector and task run, else 0.", registry=registry
        )
        self.tasks = Gauge(
            "tellonce_connector_tasks", "Tasks of the connector by state.", ["state"], registry=registry
        )
        self.remedies = Counter(
            "tellonce_capture_remedies",
            "What was done: failed tasks restarted, the slot rebuilt, a rebuild cut short resumed.",
            ["remedy"],
            registry=registry,
        )
        self.remedies_failed = Counter(
            "tellonce_capture_remedies_failed", "Remedies that did not work.", ["remedy"], registry=registry
        )
        self.age = Gauge(
            "tellonce_capture_age_seconds",
            "Everything that committed longer ago than this is in Kafka. One to three seconds is healthy: "
            "Connect confirms once a second.",
            registry=registry,
        )
        self.active = Gauge("tellonce_slot_active", "1 when somebody reads the slot.", registry=registry)
        self.lag = Gauge(
            "tellonce_slot_lag_bytes", "WAL written and not confirmed by the slot.", registry=registry
        )
        self.retained = Gauge(
            "tellonce_slot_retained_bytes", "WAL kept on disk for the slot.", registry=registry
        )
        self.safe = Gauge(
            "tellonce_slot_safe_bytes",
            "WAL that may still be written before the slot is in danger of being lost.",
            registry=registry,
        )
        self.wal_status = Gauge(
            "tellonce_slot_wal_status",
            "1 for the state of the WAL that the slot needs: reserved, extended, unreserved, lost.",
            ["status"],
            registry=registry,
        )
        for alarm in Alarm:
            self.alarm.labels(alarm).set(0)
            self.alarms.labels(alarm)
        for remedy in (Remedy.RESTART, Remedy.REBUILD, Remedy.RESUME):
            self.remedies.labels(remedy)
            self.remedies_failed.labels(remedy)

    def show_slot(self, slot: Slot | None) -> None:
        """None: there is no slot, or it cannot be seen; the alarms say which."""
        self.active.set(slot.active if slot else 0)
        self.lag.set(_known(slot.lag if slot else None))
        self.retained.set(_known(slot.retained if slot else None))
        self.safe.set(_known(slot.safe if slot else None))
        for status in WAL_STATUSES:
            self.wal_status.labels(status).set(slot is not None and slot.wal_status == status)

    def show_connector(self, status: ConnectorStatus | None) -> None:
        """None: there is no connector, or Connect does not answer."""
        self.running.set(status is not None and status.is_streaming)
        for state in State:
            number = sum(task.state is state for task in status.tasks) if status else 0
            self.tasks.labels(state.value.lower()).set(number)


def _known(value: int | None) -> float:
    return float("nan") if value is None else value
