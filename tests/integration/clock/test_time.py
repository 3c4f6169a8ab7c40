"""One Clock for everybody: moved, paced, shown, and the same in SQL and in Python."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from connectors.postgres import clock
from producers.clock import time as clock_time
from schemas.clock import InvalidClockError
from tests.integration.clock.conftest import TENANT, Database

SOON = timedelta(seconds=5)
LONG_AGO = datetime(2011, 10, 1, 9, tzinfo=UTC)


def test_a_fresh_clock_shows_real_time(database: Database) -> None:
    conn = database.connect(database.consumer_dsn)
    reading, real = clock.read_at(conn)
    assert reading.is_real
    assert abs(clock.now(conn) - real) < SOON


def test_the_clock_is_moved_paced_shown_and_reset(database: Database) -> None:
    owner = database.connect(database.owner_dsn)
    consumer = database.connect(database.consumer_dsn)

    clock_time.move(owner, timedelta(days=3))
    assert clock.read(consumer).offset == timedelta(days=3)

    clock_time.show(owner, LONG_AGO)
    assert LONG_AGO <= clock.now(consumer) < LONG_AGO + SOON

    clock_time.pace(owner, 0)
    stood = clock.now(consumer)
    assert clock.now(consumer) == stood

    clock_time.reset(owner)
    assert clock.read(consumer).is_real


def test_sql_and_python_show_the_same(database: Database) -> None:
    owner = database.connect(database.owner_dsn)
    clock_time.show(owner, LONG_AGO)
    clock_time.pace(owner, 60)
    with owner.transaction():
        row = owner.execute("SELECT platform.clock_now(), now()").fetchone()
        assert row is not None
        assert abs(clock.read(owner).now(row[1]) - row[0]) < timedelta(milliseconds=1)


def test_a_held_tenants_clock_stands_while_the_others_go_on(database: Database) -> None:
    database.run("UPDATE platform.tenant SET held_at = %s WHERE tenant_id = %s", LONG_AGO, TENANT)
    database.run("INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES ('b', 'B', now())")
    shown = clock.tenant_now(database.connect(database.consumer_dsn), [TENANT, "b", "nobody"])
    assert shown.keys() == {TENANT, "b"}
    assert shown[TENANT] == LONG_AGO
    assert shown["b"] - LONG_AGO > timedelta(days=365)


def test_two_people_moving_the_clock_at_once_both_move_it(database: Database) -> None:
    owners = [database.connect(database.owner_dsn) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda conn=conn: clock_time.move(conn, timedelta(hours=1)))
        for conn in owners
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.read(owners[0]).offset == timedelta(hours=4)


def test_an_impossible_pace_changes_nothing(database: Database) -> None:
    owner = database.connect(database.owner_dsn)
    with pytest.raises(InvalidClockError):
        clock_time.pace(owner, -1)
    assert clock.read(owner).is_real


def test_an_installation_without_its_clock_says_so(database: Database) -> None:
    database.run("DELETE FROM platform.clock")
    conn = database.connect(database.owner_dsn)
    with pytest.raises(clock.ClockMissingError, match="tellonce migrate"):
        clock.now(conn)
    with pytest.raises(clock.ClockMissingError, match="tellonce migrate"):
        clock_time.reset(conn)
