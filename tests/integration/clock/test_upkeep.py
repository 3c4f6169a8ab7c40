"""Coming days have their partitions well ahead; days behind the horizon go, unless a decision is owed."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta

from prometheus_client import CollectorRegistry

from producers.clock.signals import ClockMetrics
from producers.clock.upkeep import Upkeep, keep_up
from tests.integration.clock.conftest import GROUP, TENANT, TOPIC, Database

TODAY = datetime.now(UTC).date()
OLD = TODAY - timedelta(days=30)
OLD_ID = "SELECT overlay(overlay(platform.day_floor(%s::date)::text placing '7' from 15) placing '8' from 20)"


def pass_over(database: Database, days: int = 8) -> tuple[Upkeep, ClockMetrics]:
    metrics = ClockMetrics(CollectorRegistry())
    return keep_up(database.connect(database.consumer_dsn), metrics, days), metrics


def days_of(database: Database, root: str) -> set[str]:
    rows = database.run(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", f"platform.{root}"
    )
    return {row[0][-8:] for row in rows if row[0][-8:].isdigit()}


def recorded(database: Database, *, at: date) -> str:
    """An event with an id of the old day, as the database took it at `at`; returns the id."""
    ((event_id,),) = database.run(OLD_ID, OLD)
    database.run(
        "INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, key_id, topic, event_type, "
        "payload, occurred_at, recorded_at) VALUES (%s, %s, 'loans', 'a', 'a', %s, 'loans.initiated', '{}', "
        "%s, %s)",
        event_id,
        TENANT,
        TOPIC,
        OLD,
        at,
    )
    return str(event_id)


def test_missing_days_are_made_and_a_second_pass_changes_nothing(database: Database) -> None:
    far = len(days_of(database, "outbox")) + 5
    first, metrics = pass_over(database, far)
    assert first.made > 0
    assert first.gaps == ()
    assert metrics.partition_gaps._value.get() == 0
    again, _ = pass_over(database, far)
    assert (again.made, again.gaps) == (0, ())
    assert f"{TODAY + timedelta(days=far - 1):%Y%m%d}" in days_of(database, "decision")


def test_a_day_that_cannot_be_made_is_an_alarm_and_the_next_pass_mends_it(database: Database) -> None:
    database.run(
        "DO $$ DECLARE leaf text; BEGIN FOR leaf IN SELECT inhrelid::regclass FROM pg_inherits "
        "WHERE inhparent = 'platform.outbox'::regclass AND inhrelid::regclass::text ~ '[0-9]{8}$' "
        "LOOP EXECUTE 'DROP TABLE ' || leaf; END LOOP; END $$"
    )
    other = database.connect(database.owner_dsn, autocommit=False)
    other.execute("LOCK TABLE platform.outbox_default IN ROW EXCLUSIVE MODE")
    blocked, metrics = pass_over(database)
    assert blocked.made == 0
    assert len(blocked.gaps) == 8
    assert metrics.partition_gaps._value.get() == 8
    other.rollback()
    mended, metrics = pass_over(database)
    assert mended.gaps == ()
    assert metrics.partition_gaps._value.get() == 0


def test_several_clocks_at_once_make_each_day_once(database: Database) -> None:
    days = len(days_of(database, "outbox")) + 3
    ((missing,),) = database.run("SELECT count(*) FROM platform.partition_gaps(%s)", days)
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.append(pass_over(database, days)[0].made)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(made) == 2 * missing > 0
    assert pass_over(database, days)[0].gaps == ()


def test_a_day_behind_the_horizon_goes(database: Database) -> None:
    database.run("SELECT platform.ensure_partitions(%s, 1)", OLD)
    done, _ = pass_over(database)
    assert done.dropped == 2
    assert f"{OLD:%Y%m%d}" not in days_of(database, "outbox") | days_of(database, "decision")


def test_a_day_with_a_record_nobody_decided_is_kept_and_an_alarm(database: Database) -> None:
    database.run("SELECT platform.ensure_partitions(%s, 1)", OLD)
    database.run("UPDATE platform.group_subscription SET since = 'epoch'")
    event_id = recorded(database, at=OLD)
    kept, metrics = pass_over(database)
    assert (kept.dropped, kept.kept) == (0, (OLD,))
    assert metrics.partitions_kept._value.get() == 1
    database.decided(event_id, group=GROUP)
    gone, _ = pass_over(database)
    assert (gone.dropped, gone.kept) == (2, ())


def test_a_day_whose_rows_were_recorded_later_waits_for_them_and_is_no_alarm(database: Database) -> None:
    """An import's ids are of its first start; however long it takes, the clock goes on."""
    database.run("SELECT platform.ensure_partitions(%s, 1)", OLD)
    recorded(database, at=TODAY - timedelta(days=2))
    waiting, metrics = pass_over(database)
    assert (waiting.dropped, waiting.kept) == (0, ())
    assert metrics.partitions_kept._value.get() == 0
    assert f"{OLD:%Y%m%d}" in days_of(database, "outbox")


def test_what_the_default_caught_of_a_day_goes_with_it(database: Database) -> None:
    event_id = recorded(database, at=OLD)
    caught = "SELECT count(*) FROM platform.outbox_default UNION ALL SELECT count(*) FROM platform.decision_default"
    assert database.run(caught) == [(1,), (0,)]
    database.run("UPDATE platform.group_subscription SET since = 'epoch'")
    assert pass_over(database)[0].kept == (OLD,)
    database.decided(event_id, group=GROUP)
    assert pass_over(database)[0].dropped == 2
    late = database.run("SELECT platform.append(%s, 'loans', 'b', 'loans.initiated', '{}')", TENANT)
    database.decided(event_id, group=GROUP)  # delivered again after its day was dropped
    assert database.run(caught) == [(0,), (1,)]
    assert pass_over(database)[0].dropped == 2
    assert database.run(caught) == [(0,), (0,)]
    assert database.run("SELECT event_id FROM platform.outbox") == late
