"""What is wrong with capture, and what to do about it: pure.

What Debezium 3.7 does by itself, found by experiment: a database or broker that goes away, or a replication
backend that is ended, it survives (streaming again after a second). A slot that is gone, or that is ahead of
its stored position because somebody made a new one, fails the task for good: no restart helps until the
stored position is forgotten. A slot whose WAL was removed it retries for half an hour, running all the while.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from connectors.debezium.client import ConnectorStatus, State
from connectors.debezium.slot import Slot

LAGGING_S = 60.0
"""Capture that knows nothing newer than this is stuck or drowning; everybody is told late."""


class Alarm(StrEnum):
    """What an operator must hear of; each a label of one metric and one log line. Closed."""

    DATABASE_AWAY = "database_away"
    """The supervisor cannot see the slot."""
    CONNECT_AWAY = "connect_away"
    """Kafka Connect does not answer, does not stop rebalancing, or answers with an error of its own."""
    CONNECTOR_MISSING = "connector_missing"
    """Connect has no such connector: `tellonce connector apply`."""
    CONNECTOR_HELD = "connector_held"
    """Somebody paused or stopped it: WAL piles up until it is resumed. It is left alone."""
    TASK_FAILED = "task_failed"
    """It is restarted, at growing intervals."""
    SLOT_MISSING = "slot_missing"
    """Dropped: what commits without a slot is never captured. It is made anew."""
    SLOT_REPLACED = "slot_replaced"
    """Another slot under the same name, ahead of what was captured: as if it were missing."""
    SLOT_LOST = "slot_lost"
    """Its WAL is gone (max_slot_wal_keep_size): dropped and made anew, as if it were missing."""
    PUBLICATION_MISSING = "publication_missing"
    """What commits meanwhile is never captured, though all seems to run. The owner makes it again, as the
    migrations have it."""
    SLOT_AT_RISK = "slot_at_risk"
    """The next checkpoint may remove WAL it needs: make capture run, or raise max_slot_wal_keep_size."""
    LAGGING = "lagging"
    """Capture's knowledge is older than a minute."""


class Remedy(StrEnum):
    """What the supervisor does now."""

    NOTHING = "nothing"
    RESTART = "restart"
    """The failed tasks, from their stored position."""
    REBUILD = "rebuild"
    """Stop, forget the stored position, drop a lost slot, resume: Debezium makes the slot anew."""
    RESUME = "resume"
    """Finish a rebuild that was cut short: stopped, and no stored position."""


BROKEN_SLOT = frozenset({Alarm.SLOT_MISSING, Alarm.SLOT_REPLACED, Alarm.SLOT_LOST})
"""Only a new slot helps."""
LOSSES = BROKEN_SLOT | {Alarm.PUBLICATION_MISSING}
"""Alarms while which committed rows may never be captured: the reconciler owes a full sweep after them."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Connector and slot as just read, the slot first: it never confirms what is not stored before."""

    status: ConnectorStatus | None
    slot: Slot | None
    stored: int | None
    """The position Connect has stored; None when there is none, or when it does not matter."""
    age_s: float
    is_published: bool = True


@dataclass(frozen=True, slots=True)
class Diagnosis:
    alarms: frozenset[Alarm]
    remedy: Remedy
    cause: str = ""
    """Of a failed task, in Debezium's words."""


def needs_stored_position(status: ConnectorStatus | None, slot: Slot | None) -> bool:
    """Whether a diagnosis depends on it; reading it costs Connect a walk through its offsets topic."""
    return status is not None and (slot is None or status.has_failed or status.state is State.STOPPED)


def diagnose(seen: Observed) -> Diagnosis:
    """What is wrong, and the one thing to do now. A connector that somebody holds is never overruled."""
    alarms = set(_slot_alarms(seen))
    if not seen.is_published:
        alarms.add(Alarm.PUBLICATION_MISSING)
    if seen.age_s > LAGGING_S:
        alarms.add(Alarm.LAGGING)
    if seen.status is None:
        return Diagnosis(frozenset({*alarms, Alarm.CONNECTOR_MISSING}), Remedy.NOTHING)
    if seen.status.state is State.STOPPED and seen.stored is None:
        return Diagnosis(frozenset(alarms), Remedy.RESUME)
    if seen.status.state in (State.PAUSED, State.STOPPED):
        return Diagnosis(frozenset({*alarms, Alarm.CONNECTOR_HELD}), Remedy.NOTHING)
    if seen.status.has_failed or _is_restarting(seen.status):
        alarms.add(Alarm.TASK_FAILED)
    remedy = Remedy.NOTHING
    if alarms & BROKEN_SLOT:
        remedy = Remedy.REBUILD
    elif seen.status.has_failed:
        remedy = Remedy.RESTART
    return Diagnosis(frozenset(alarms), remedy, seen.status.why)


def _is_restarting(status: ConnectorStatus) -> bool:
    """Told to, and not yet better: one alarm for a task that fails again and again, not one each time."""
    return any(task.state is State.RESTARTING for task in status.tasks)


def _slot_alarms(seen: Observed) -> list[Alarm]:
    if seen.slot is None:
        # Without a stored position this is a connector that is just starting: it makes its slot itself.
        return [Alarm.SLOT_MISSING] if seen.stored is not None else []
    if seen.slot.is_lost:
        return [Alarm.SLOT_LOST]
    if seen.status is not None and seen.status.has_failed and _is_ahead(seen.slot, seen.stored):
        return [Alarm.SLOT_REPLACED]
    return [Alarm.SLOT_AT_RISK] if seen.slot.is_at_risk else []


def _is_ahead(slot: Slot, stored: int | None) -> bool:
    return slot.confirmed is not None and stored is not None and slot.confirmed > stored
