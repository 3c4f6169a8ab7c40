"""What is wrong with capture and what is done, for every state that was seen in experiments."""

from __future__ import annotations

import pytest

from connectors.debezium.client import ConnectorStatus, State, TaskStatus
from connectors.debezium.diagnose import Alarm, Observed, Remedy, diagnose, needs_stored_position
from connectors.debezium.slot import Slot

GOOD = Slot(active=True, wal_status="reserved", confirmed=100, lag=5, retained=50, safe=None)
IDLE = Slot(active=False, wal_status="reserved", confirmed=100, lag=5, retained=50, safe=None)
LOST = Slot(active=False, wal_status="lost", confirmed=100, lag=5, retained=None, safe=None)
AT_RISK = Slot(active=True, wal_status="unreserved", confirmed=100, lag=5, retained=50, safe=-1)


def connector(state: State, *tasks: State, trace: str = "") -> ConnectorStatus:
    return ConnectorStatus(
        "tellonce", state, tuple(TaskStatus(number, task, trace) for number, task in enumerate(tasks))
    )


RUNNING = connector(State.RUNNING, State.RUNNING)
FAILED = connector(State.RUNNING, State.FAILED, trace="java.lang.X: outer\n\tat y\nCaused by: z.Inner: why")
STARTING = connector(State.RUNNING)
PAUSED = connector(State.PAUSED, State.PAUSED)
STOPPED = connector(State.STOPPED)


@pytest.mark.parametrize(
    ("seen", "alarms", "remedy"),
    [
        pytest.param(Observed(RUNNING, GOOD, None, 1), set(), Remedy.NOTHING, id="all is well"),
        pytest.param(Observed(STARTING, None, None, 1), set(), Remedy.NOTHING, id="makes its slot"),
        pytest.param(Observed(RUNNING, IDLE, None, 1), set(), Remedy.NOTHING, id="between two tries"),
        pytest.param(
            Observed(None, None, None, 1), {Alarm.CONNECTOR_MISSING}, Remedy.NOTHING, id="never applied"
        ),
        pytest.param(Observed(FAILED, IDLE, 100, 1), {Alarm.TASK_FAILED}, Remedy.RESTART, id="a failed task"),
        pytest.param(
            Observed(connector(State.RUNNING, State.RESTARTING), IDLE, None, 1),
            {Alarm.TASK_FAILED},
            Remedy.NOTHING,
            id="told to restart, not yet better",
        ),
        pytest.param(
            Observed(connector(State.FAILED), IDLE, 100, 1),
            {Alarm.TASK_FAILED},
            Remedy.RESTART,
            id="a failed connector",
        ),
        pytest.param(
            Observed(FAILED, None, None, 1),
            {Alarm.TASK_FAILED},
            Remedy.RESTART,
            id="could not make its first slot",
        ),
        pytest.param(
            Observed(RUNNING, None, 100, 1),
            {Alarm.SLOT_MISSING},
            Remedy.REBUILD,
            id="dropped, not yet noticed",
        ),
        pytest.param(
            Observed(FAILED, None, 100, 1),
            {Alarm.SLOT_MISSING, Alarm.TASK_FAILED},
            Remedy.REBUILD,
            id="dropped, failed on it",
        ),
        pytest.param(
            Observed(FAILED, IDLE, 99, 1),
            {Alarm.SLOT_REPLACED, Alarm.TASK_FAILED},
            Remedy.REBUILD,
            id="somebody made another",
        ),
        pytest.param(
            Observed(RUNNING, LOST, None, 1), {Alarm.SLOT_LOST}, Remedy.REBUILD, id="lost while it retries"
        ),
        pytest.param(
            Observed(RUNNING, AT_RISK, None, 1), {Alarm.SLOT_AT_RISK}, Remedy.NOTHING, id="about to be lost"
        ),
        pytest.param(
            Observed(RUNNING, GOOD, None, 1, is_published=False),
            {Alarm.PUBLICATION_MISSING},
            Remedy.NOTHING,
            id="streams, and publishes nothing",
        ),
        pytest.param(Observed(RUNNING, GOOD, None, 61), {Alarm.LAGGING}, Remedy.NOTHING, id="drowning"),
        pytest.param(
            Observed(PAUSED, GOOD, None, 90),
            {Alarm.CONNECTOR_HELD, Alarm.LAGGING},
            Remedy.NOTHING,
            id="paused by somebody",
        ),
        pytest.param(
            Observed(PAUSED, LOST, None, 1),
            {Alarm.CONNECTOR_HELD, Alarm.SLOT_LOST},
            Remedy.NOTHING,
            id="paused until it was lost: not overruled",
        ),
        pytest.param(
            Observed(STOPPED, None, 100, 1),
            {Alarm.CONNECTOR_HELD, Alarm.SLOT_MISSING},
            Remedy.NOTHING,
            id="stopped by somebody: not overruled",
        ),
        pytest.param(
            Observed(STOPPED, None, None, 1), set(), Remedy.RESUME, id="a rebuild that was cut short"
        ),
    ],
)
def test_diagnosis(seen: Observed, alarms: set[Alarm], remedy: Remedy) -> None:
    found = diagnose(seen)
    assert (set(found.alarms), found.remedy) == (alarms, remedy)


def test_the_cause_is_the_innermost_of_the_trace() -> None:
    assert diagnose(Observed(FAILED, IDLE, 100, 1)).cause == "z.Inner: why"


@pytest.mark.parametrize(
    ("status", "slot", "needed"),
    [(RUNNING, GOOD, False), (RUNNING, None, True), (FAILED, GOOD, True), (STOPPED, GOOD, True)],
)
def test_the_stored_position_is_read_only_when_it_tells_something(
    status: ConnectorStatus, slot: Slot | None, needed: bool
) -> None:
    assert needs_stored_position(status, slot) is needed
