"""The loop that fires: asleep it asks nothing, and whatever makes something due wakes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from producers import tenants
from producers.clock import time as clock_time
from producers.clock.firing import Firing
from producers.clock.signals import ClockMetrics
from producers.clock.weather import Weather
from tests.integration.clock.conftest import TENANT, Database
from tests.integration.clock.nudges import Nudges
from tests.integration.clock.test_run import until

HOUR = timedelta(hours=1)
ASLEEP_S = 1.5
"""Longer than the loop's own waits on anything but the database."""


class Running:
    """The loop in a thread of this process."""

    def __init__(self, dsn: str) -> None:
        self.registry = CollectorRegistry()
        self.stop = threading.Event()
        self.weather = Weather("timers", self.stop, 0.05)
        firing = Firing(dsn, ClockMetrics(self.registry), self.stop, self.weather)
        self._thread = threading.Thread(target=firing.run)
        self._thread.start()

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0

    def end(self) -> None:
        self.stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def nudges(database: Database) -> Nudges:
    return Nudges(database)


@pytest.fixture
def start(database: Database) -> Iterator[Callable[[], Running]]:
    running: list[Running] = []

    def start() -> Running:
        running.append(Running(database.consumer_dsn))
        until(lambda: running[-1].weather.bad is None and is_asleep(database))
        return running[-1]

    yield start
    for loop in running:
        loop.end()


SEEN = "SELECT state, query_start FROM pg_stat_activity WHERE datname = %s AND application_name = 'tellonce timers'"


def is_asleep(database: Database) -> bool:
    with psycopg.connect(database.admin_dsn) as admin:
        return all(state == "idle" for state, _ in admin.execute(SEEN, [database.name]))


def test_it_fires_at_the_due_time_and_asks_nothing_before(
    database: Database, nudges: Nudges, start: Callable[[], Running]
) -> None:
    nudges.arm(["far"], 10 * HOUR)
    start()
    with psycopg.connect(database.admin_dsn, autocommit=True) as admin:
        until(lambda: is_asleep(database))
        time.sleep(0.2)
        before = admin.execute(SEEN, [database.name]).fetchall()
        time.sleep(ASLEEP_S)
        assert admin.execute(SEEN, [database.name]).fetchall() == before
        assert len(before) == 1
    nudges.arm(["soon"], timedelta(seconds=1))
    armed = time.monotonic()
    until(lambda: nudges.in_state("pending") == {"soon"})
    assert time.monotonic() - armed > 0.5


def test_an_earlier_one_wakes_it(nudges: Nudges, start: Callable[[], Running]) -> None:
    nudges.arm(["far"], HOUR)
    running = start()
    nudges.arm(["due"])
    until(lambda: nudges.in_state("pending") == {"due"}, 3)
    assert running.metric("tellonce_timers_fired_total", product="loans") == 1


def test_moving_time_wakes_it(database: Database, nudges: Nudges, start: Callable[[], Running]) -> None:
    nudges.arm(["lead"], HOUR)
    start()
    clock_time.move(database.connect(database.owner_dsn), 2 * HOUR)
    until(lambda: nudges.in_state("pending") == {"lead"}, 3)


def test_a_faster_clock_wakes_it_and_is_followed(
    database: Database, nudges: Nudges, start: Callable[[], Running]
) -> None:
    owner = database.connect(database.owner_dsn)
    clock_time.pace(owner, 0)
    nudges.arm(["lead"], HOUR)
    start()
    clock_time.pace(owner, 3600)
    until(lambda: nudges.in_state("pending") == {"lead"}, 5)


@pytest.mark.parametrize("how", ["suspended", "held"])
def test_a_tenant_that_runs_again_wakes_it(
    database: Database, nudges: Nudges, start: Callable[[], Running], how: str
) -> None:
    owner = database.connect(database.owner_dsn)
    stop, go = (tenants.suspend, tenants.resume) if how == "suspended" else (tenants.hold, tenants.release)
    stop(owner, TENANT)
    nudges.arm(["lead"], -HOUR)
    start()
    assert nudges.in_state("pending") == set()
    go(owner, TENANT)
    until(lambda: nudges.in_state("pending") == {"lead"}, 3)


def test_one_that_waits_is_fired_soon_after_its_past_is_complete(
    database: Database, nudges: Nudges, start: Callable[[], Running]
) -> None:
    nudges.arm(["lead", "other"])
    (event_id,) = database.happened("lead")
    running = start()
    until(lambda: running.metric("tellonce_timers_held_back_total", product="loans") > 1)
    assert running.metric("tellonce_timers_waiting") == 1
    assert nudges.in_state("pending") == {"other"}
    database.decided(event_id)
    until(lambda: nudges.in_state("pending") == {"lead", "other"}, 5)
    until(lambda: running.metric("tellonce_timers_waiting") == 0)


def test_a_backlog_is_worked_off_without_being_woken(nudges: Nudges, start: Callable[[], Running]) -> None:
    leads = [f"lead-{n}" for n in range(4_000)]
    nudges.arm(leads, -HOUR)
    start()
    until(lambda: len(nudges.in_state("pending")) == len(leads), 20)


def test_it_comes_back_after_its_connection_was_ended(
    database: Database, nudges: Nudges, start: Callable[[], Running]
) -> None:
    start()
    with psycopg.connect(database.admin_dsn, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            " AND application_name = 'tellonce timers'",
            [database.name],
        )
    nudges.arm(["lead"])
    until(lambda: nudges.in_state("pending") == {"lead"}, 5)
