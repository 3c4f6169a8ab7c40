"""What stops capture raises the alarm and is mended, on the real engines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from connectors.debezium.diagnose import Alarm
from connectors.debezium.status import read_status
from connectors.debezium.supervise import Watched, stored_position
from connectors.debezium.watch import CaptureOptions, CaptureProcess
from connectors.telemetry import TelemetryServer
from deploy.local.stack import Stack
from tests.integration.capture.conftest import Capture, until

PUBLICATION = (
    "CREATE PUBLICATION tellonce_outbox FOR TABLE platform.outbox "
    "WITH (publish = 'insert', publish_via_partition_root = true, publish_generated_columns = stored)"
)


class Watching:
    """A supervisor at work, seen as Prometheus sees it."""

    def __init__(self, server: TelemetryServer) -> None:
        self._url = f"http://{server.host}:{server.port}"

    def metric(self, name: str) -> float:
        lines = httpx.get(f"{self._url}/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def lasts(self, alarm: Alarm) -> bool:
        return self.metric(f'tellonce_capture_alarm{{alarm="{alarm}"}}') == 1

    def began(self, alarm: Alarm) -> float:
        return self.metric(f'tellonce_capture_alarms_total{{alarm="{alarm}"}}')

    def did(self, remedy: str) -> float:
        return self.metric(f'tellonce_capture_remedies_total{{remedy="{remedy}"}}')

    def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"{self._url}/health").json()
        return answer


@contextmanager
def watching(capture: Capture) -> Iterator[Watching]:
    """Run the supervisor of this connector until the block ends."""
    stop = threading.Event()
    started: list[TelemetryServer] = []
    ready = threading.Event()

    def note(server: TelemetryServer) -> None:
        started.append(server)
        ready.set()

    options = CaptureOptions(every_s=0.1, watched=Watched(capture.config.name, capture.config.slot))
    process = CaptureProcess(capture.settings, stop=stop, options=options)
    thread = threading.Thread(target=process.run, args=(note,))
    thread.start()
    try:
        assert ready.wait(10)
        watch = Watching(started[0])
        until(lambda: watch.health()["ok"])
        yield watch
    finally:
        stop.set()
        thread.join()


@contextmanager
def load(capture: Capture) -> Iterator[list[str]]:
    """Commit events of one lead all the time until the block ends; the ids, in order, as they commit."""
    ids: list[str] = []
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.005):
            ids.extend(capture.happened())

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield ids
    finally:
        done.set()
        thread.join()


def owes_full_sweep(capture: Capture) -> bool:
    return bool(capture.run("SELECT full_owed FROM platform.reconciler")[0][0])


def test_all_is_well(own: Capture) -> None:
    with watching(own) as watch:
        own.happened(3)
        until(lambda: watch.metric("tellonce_capture_age_seconds") < 5)
        assert watch.metric("tellonce_connector_running") == 1
        assert watch.metric('tellonce_connector_tasks{state="running"}') == 1
        assert watch.metric("tellonce_slot_active") == 1
        assert watch.metric("tellonce_slot_lag_bytes") >= 0
        assert watch.metric('tellonce_slot_wal_status{status="reserved"}') == 1
        assert watch.health()["alarms"] == []
        assert not owes_full_sweep(own)
    with psycopg.connect(own.settings.database_url.get_secret_value(), autocommit=True) as conn:
        status = read_status(own.connect, conn, Watched(own.config.name, own.config.slot))
    assert status.is_streaming
    assert status.alarms == ()
    assert status.as_json()["streaming"] is True


def test_an_idle_stream_keeps_its_age(own: Capture) -> None:
    """Heartbeats move the slot though nothing is written."""
    with watching(own) as watch:
        until(lambda: watch.metric("tellonce_capture_age_seconds") < 3)
        ages = []
        for _ in range(20):
            time.sleep(0.2)
            ages.append(watch.metric("tellonce_capture_age_seconds"))
        assert max(ages) < 15


def test_a_replication_backend_that_is_ended_costs_nothing(own: Capture) -> None:
    with watching(own) as watch, own.tail() as tail:
        with load(own) as ids:
            until(lambda: len(ids) > 50)
            own.kick_backend()
            own.await_streaming()
        tail.until(lambda: set(tail.ids) >= set(ids))
        assert sorted(set(tail.ids), key=tail.ids.index) == ids
        assert watch.did("rebuild") == 0


def test_a_failed_task_is_restarted(own: Capture) -> None:
    """Without its publication Debezium's task fails for good as soon as it has to connect again."""
    with watching(own) as watch, own.tail() as tail:
        before = own.happened(5)
        tail.until_count(5)
        own.run("DROP PUBLICATION tellonce_outbox")
        own.kick_backend()
        until(lambda: "Publication" in own.connect.status(own.config.name).why)
        until(lambda: watch.lasts(Alarm.TASK_FAILED))
        assert watch.lasts(Alarm.PUBLICATION_MISSING)
        until(lambda: watch.did("restart") >= 2)
        own.run(PUBLICATION)
        own.run("ALTER PUBLICATION tellonce_outbox OWNER TO tellonce_owner")
        own.await_streaming()
        after = own.happened(5)
        tail.until(lambda: set(tail.ids) >= {*before, *after})
        until(lambda: watch.health()["alarms"] == [])
        assert owes_full_sweep(own)
        assert watch.did("rebuild") == 0


def test_a_slot_dropped_under_load_raises_the_alarm_and_heals(own: Capture) -> None:
    with watching(own) as watch, own.tail() as tail:
        with load(own) as ids:
            until(lambda: len(ids) > 100)
            own.drop_slot()
            until(lambda: watch.began(Alarm.SLOT_MISSING) == 1)
            until(lambda: watch.did("rebuild") == 1)
            own.await_streaming()
            healed = len(ids)
            until(lambda: len(ids) > healed + 100)
            until(lambda: watch.health()["alarms"] == [])
        tail.until(lambda: ids[-1] in tail.ids)
        arrived = set(tail.ids)
        lost = [event_id for event_id in ids if event_id not in arrived]
        assert lost == ids[ids.index(lost[0]) : ids.index(lost[-1]) + 1], "one gap, nothing else"
        assert arrived >= set(ids[healed:])
        # What the reconciler does once its sweep finds them:
        assert owes_full_sweep(own)
        with psycopg.connect(own.settings.database_url.get_secret_value(), autocommit=True) as consumer:
            consumer.execute(
                "SELECT platform.resend(%s::uuid[], %s::text[])", [lost, [own.tenant] * len(lost)]
            )
        tail.until(lambda: set(tail.ids) == set(ids))
        assert [event_id for event_id in tail.ids if event_id in lost] == lost
        assert watch.did("rebuild") == 1


def test_a_slot_made_anew_behind_capture_is_noticed(own: Capture) -> None:
    """Debezium by default streams on from it, as if nothing were missing."""
    with watching(own) as watch, own.tail() as tail:
        tail.until(lambda: own.happened() != [] and len(tail.ids) > 3)
        own.stop_and_drop_slot()
        missed = own.happened(5)
        own.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", own.config.slot)
        own.connect.resume(own.config.name)
        until(lambda: watch.began(Alarm.SLOT_REPLACED) == 1)
        own.await_streaming()
        after = own.happened(5)
        tail.until(lambda: set(tail.ids) >= set(after))
        assert not set(tail.ids) & set(missed)
        assert owes_full_sweep(own)
        assert watch.did("rebuild") == 1


@pytest.fixture
def scarce_wal(stack: Stack) -> Iterator[None]:
    """PostgreSQL keeps no more than 64 MB of WAL for a slot that lags."""
    settings = {"max_slot_wal_keep_size": "64MB", "max_wal_size": "64MB"}
    with psycopg.connect(stack.admin_dsn, autocommit=True) as admin:
        for name, value in settings.items():
            admin.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        admin.execute("SELECT pg_reload_conf()")
        yield
        for name in settings:
            admin.execute(f"ALTER SYSTEM RESET {name}".encode())
        admin.execute("SELECT pg_reload_conf()")


def test_a_slot_whose_wal_is_gone_is_dropped_and_made_anew(own: Capture, scarce_wal: None) -> None:
    """Debezium retries it for half an hour, running all the while."""
    fill = "SELECT pg_logical_emit_message(false, 'x', repeat('x', 4000000)) FROM generate_series(1, 8)"
    slot = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"

    def lost() -> bool:
        own.run(fill)
        own.run("CHECKPOINT")
        return own.run(slot, own.config.slot) == [("lost",)]

    with watching(own) as watch, own.tail() as tail:
        tail.until(lambda: own.happened() != [] and len(tail.ids) > 3)
        own.connect.pause(own.config.name)
        until(lambda: watch.lasts(Alarm.CONNECTOR_HELD))
        until(lost)
        until(lambda: watch.lasts(Alarm.SLOT_LOST))
        assert watch.did("rebuild") == 0, "what somebody paused is left alone"
        own.connect.resume(own.config.name)
        until(lambda: watch.did("rebuild") == 1)
        own.await_streaming()
        after = own.happened(5)
        tail.until(lambda: set(tail.ids) >= set(after))
        assert owes_full_sweep(own)


def test_a_rebuild_that_was_cut_short_is_finished(own: Capture) -> None:
    """The process that began it died between forgetting the position and resuming."""
    own.stop_and_drop_slot()
    own.connect.forget_offsets(own.config.name)
    with watching(own) as watch, own.tail() as tail:
        until(lambda: watch.did("resume") == 1)
        own.await_streaming()
        ids = own.happened(5)
        tail.until(lambda: set(tail.ids) >= set(ids))


def test_a_worker_killed_under_load_repeats_and_loses_nothing(own: Capture, stack: Stack) -> None:
    """The stored position is never behind the slot, so a kill is not taken for a lost slot."""
    with watching(own) as watch, own.tail() as tail:
        with load(own) as ids:
            until(lambda: len(ids) > 100)
            stack.kill("connect")
            until(lambda: watch.lasts(Alarm.CONNECT_AWAY))
            stack.restart("connect")
            own.await_streaming()
        tail.until(lambda: set(tail.ids) >= set(ids))
        assert sorted(set(tail.ids), key=tail.ids.index) == ids
        assert watch.did("rebuild") == 0
        assert not owes_full_sweep(own)
        until(lambda: watch.health()["alarms"] == [])


def test_a_database_that_restarts_is_weather(own: Capture, stack: Stack) -> None:
    with watching(own) as watch, own.tail() as tail:
        before = own.happened(5)
        stack.kill("postgres")
        until(lambda: watch.lasts(Alarm.DATABASE_AWAY))
        assert not watch.health()["ok"]
        stack.restart("postgres")
        own.await_streaming()
        after = own.happened(5)
        tail.until(lambda: set(tail.ids) >= {*before, *after})
        until(lambda: watch.health()["alarms"] == [])
        assert watch.did("rebuild") == 0


def test_the_slot_never_confirms_what_is_not_stored(own: Capture) -> None:
    """What tells a slot made anew from a healthy one: read slot first, then the stored position."""
    query = "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
    with load(own):
        until(lambda: stored_position(own.connect, own.config.name) is not None)
        for _ in range(5):
            confirmed = int(own.run(query, own.config.slot)[0][0])
            stored = stored_position(own.connect, own.config.name)
            assert stored is not None
            assert confirmed <= stored
