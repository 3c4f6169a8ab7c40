"""The reconciler on a real database: lost is found, sent again and bounded; no answer is no verdict."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from connectors.postgres.sql import load
from producers.clock.books import Books
from producers.clock.decide import MAX_RESENDS, Round, Sweep, Unanswered
from producers.clock.reconcile import LOCK
from tests.integration.clock.conftest import GROUP, TENANT, TOPIC, Database


def positions(database: Database) -> dict[str, int]:
    rows = database.run("SELECT event_id::text, position FROM platform.outbox")
    return dict(rows)


def test_nothing_is_lost_when_everything_is_decided(database: Database) -> None:
    for event_id in database.happened("a", "b"):
        database.decided(event_id)
    reconciler, _ = database.reconciler()
    done = reconciler.round()
    assert done is not None
    assert (done.undecided, done.lost, done.unanswered) == (0, 0, frozenset())


def test_what_capture_skipped_is_lost_and_sent_again_in_order(database: Database) -> None:
    first, second, third = database.happened("a", "b", "a")
    database.decided(second)
    before = positions(database)
    database.progressed(1, end=1)
    reconciler, metrics = database.reconciler()

    with database.capturing():
        done = reconciler.round()

    assert done is not None
    assert (done.lost, done.resent, done.gave_up, done.end) == (2, 2, 0, "lost")
    after = positions(database)
    assert after[second] == before[second]
    assert max(before.values()) < after[first] < after[third]
    assert metrics.lost.labels(GROUP)._value.get() == 2
    assert database.run("SELECT count(*) FROM platform.outbox") == [(3,)]


def test_a_decision_that_comes_while_waiting_is_no_loss(database: Database) -> None:
    (event_id,) = database.happened("a")
    reconciler, _ = database.reconciler(answer_within_s=20.0)
    ended: list[Round | None] = []
    worker = threading.Thread(target=lambda: ended.append(reconciler.round()))
    worker.start()
    database.decided(event_id)
    database.progressed(1, end=1)
    with database.capturing():
        worker.join()
    assert ended[0] is not None
    assert (ended[0].lost, ended[0].unanswered) == (0, frozenset())


def test_a_paused_connector_is_an_alarm_of_its_own_and_no_verdict(database: Database) -> None:
    before = positions(database) if database.happened("a") else {}
    database.progressed(0, end=0)
    reconciler, metrics = database.reconciler(answer_within_s=0.2)

    done = reconciler.round()

    assert done is not None
    assert done.unanswered == {Unanswered.CAPTURE}
    assert done.resent == 0
    assert positions(database) == before
    assert metrics.unanswered.labels(Unanswered.CAPTURE)._value.get() == 1


def test_a_dead_group_is_unanswered_and_does_not_hide_what_another_lost(database: Database) -> None:
    database.run("INSERT INTO platform.group_subscription VALUES ('rules.loans', %s, 'epoch')", TOPIC)
    (event_id,) = database.happened("a")
    database.progressed(0, end=3)
    database.progressed(3, end=3, group="rules.loans")
    reconciler, _ = database.reconciler()

    with database.capturing():
        done = reconciler.round()

    assert done is not None
    assert done.unanswered == {Unanswered.GROUP}
    assert [(lag.group, lag.missing) for lag in done.behind] == [(GROUP, 3)]
    assert done.resent == 1
    counted = database.run("SELECT event_id::text, group_name, resends FROM platform.resend_count")
    assert counted == [(event_id, "rules.loans", 1)]


def test_a_topic_that_is_gone_is_no_verdict(database: Database) -> None:
    database.happened("a")
    database.topics.clear()
    reconciler, _ = database.reconciler()
    with database.capturing():
        done = reconciler.round()
    assert done is not None
    assert done.unanswered == {Unanswered.NO_TOPIC}
    assert done.lost == 0


def test_a_missing_slot_is_an_alarm_even_when_nothing_waits(database: Database) -> None:
    database.slot(exists=False)
    reconciler, _ = database.reconciler(answer_within_s=0.0)
    done = reconciler.round()
    assert done is not None
    assert done.unanswered == {Unanswered.NO_SLOT}


def test_a_lost_row_is_sent_a_bounded_number_of_times_and_then_a_dead_letter(database: Database) -> None:
    (event_id,) = database.happened("a")
    database.progressed(0, end=0)
    reconciler, metrics = database.reconciler()
    ends = []
    with database.capturing():
        for _ in range(MAX_RESENDS + 2):
            done = reconciler.round()
            assert done is not None
            ends.append((done.resent, done.gave_up))

    assert ends == [(1, 0)] * MAX_RESENDS + [(0, 1), (0, 0)]
    letters = database.run(
        "SELECT event_id::text, tenant_id, group_name, topic, partition, reason, state::text, body "
        "FROM platform.dead_letter"
    )
    assert letters == [(event_id, TENANT, GROUP, TOPIC, -1, "lost", "open", b"{}")]
    assert database.run("SELECT outcome::text FROM platform.decision") == [("dead_letter",)]
    assert database.run("SELECT count(*) FROM platform.resend_count") == [(0,)]
    assert metrics.gave_up.labels(GROUP)._value.get() == 1


def test_what_healed_starts_counting_anew(database: Database) -> None:
    (event_id,) = database.happened("a")
    database.progressed(0, end=0)
    reconciler, _ = database.reconciler()
    with database.capturing():
        assert reconciler.round() is not None
        assert database.run("SELECT resends FROM platform.resend_count") == [(1,)]
        database.decided(event_id)
        database.happened("b")
        reconciler.round()
    counted = database.run("SELECT event_id::text FROM platform.resend_count")
    assert event_id not in {row[0] for row in counted}


def test_rows_before_a_groups_subscription_are_not_owed(database: Database) -> None:
    database.run("UPDATE platform.group_subscription SET since = now() + interval '1 hour'")
    database.happened("a")
    reconciler, _ = database.reconciler()
    done = reconciler.round()
    assert done is not None
    assert done.undecided == 0


def test_several_clocks_at_once_one_works(database: Database) -> None:
    (event_id,) = database.happened("a")
    database.progressed(0, end=0)
    clocks = [database.reconciler()[0] for _ in range(4)]
    ended: list[Round | None] = []
    threads = [threading.Thread(target=lambda each=clock: ended.append(each.round())) for clock in clocks]
    with database.capturing():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    done = [each for each in ended if each is not None]
    assert done
    assert all(each.resent == 1 for each in done)
    counted = database.run("SELECT event_id::text, resends FROM platform.resend_count")
    assert counted == [(event_id, len(done))]


def test_a_second_clock_leaves_the_round_to_the_first(database: Database) -> None:
    reconciler, _ = database.reconciler()
    with database.books().lock(LOCK) as mine:
        assert mine
        assert reconciler.round() is None
    assert reconciler.round() is not None


def test_a_clock_that_dies_in_a_round_leaves_the_lock(database: Database) -> None:
    first = database.connect(database.consumer_dsn)
    with Books(first).lock(LOCK) as mine:
        assert mine
        first.close()
    reconciler, _ = database.reconciler()
    until = time.monotonic() + 5
    while (done := reconciler.round()) is None and time.monotonic() < until:
        pass
    assert done is not None


def test_a_round_stops_at_its_next_wait(database: Database) -> None:
    database.happened("a")
    reconciler, _ = database.reconciler(answer_within_s=60.0)
    reconciler._stop.set()
    began = time.monotonic()
    assert reconciler.round() is None
    assert time.monotonic() - began < 5
    other, _ = database.reconciler(answer_within_s=0.0)
    assert other.round() is not None


def test_the_first_round_sweeps_everything_and_the_next_only_the_last_hour(database: Database) -> None:
    reconciler, _ = database.reconciler()
    sweeps = [done.sweep for done in (reconciler.round(), reconciler.round()) if done]
    assert sweeps == [Sweep.FULL, Sweep.HOUR]
    database.books().owe_full()
    asked = reconciler.round()
    assert asked is not None
    assert asked.sweep is Sweep.FULL


def test_a_recreated_slot_brings_a_full_sweep(database: Database) -> None:
    reconciler, _ = database.reconciler()
    reconciler.round()
    database.run("UPDATE platform.reconciler SET slot_txns = 1000")
    changed = reconciler.round()
    assert changed is not None
    assert changed.sweep is Sweep.FULL


def test_a_round_bounds_its_rows_and_the_next_goes_on(database: Database) -> None:
    database.happened(*(f"s{n}" for n in range(5)))
    database.progressed(0, end=0)
    reconciler, _ = database.reconciler(rows=3)
    with database.capturing():
        first = reconciler.round()
    assert first is not None
    assert (first.truncated, first.resent) == (True, 3)
    assert database.run("SELECT full_owed FROM platform.reconciler") == [(True,)]


def test_waiting_holds_no_transaction_open(database: Database) -> None:
    conn = database.connect(database.consumer_dsn, autocommit=False)
    with pytest.raises(ValueError, match="autocommit"):
        Books(conn)


def test_a_sweep_reads_by_index_and_only_the_days_it_looks_at(database: Database) -> None:
    today = datetime.now(UTC).date()
    before = today - timedelta(days=3)
    database.run("SELECT platform.ensure_partitions(%s, 1)", before)
    database.run(
        "INSERT INTO platform.outbox (tenant_id, product, subject_id, event_type, payload) "
        "SELECT %s, 'loans', 's' || n, 'loans.initiated', '{}' FROM generate_series(1, 3000) n",
        TENANT,
    )
    database.run("ANALYZE platform.outbox")
    statement = b"EXPLAIN " + load("producers.clock", "queries.sql")["undecided"]
    values = {"group": GROUP, "topics": [TOPIC], "since": datetime.now(UTC), "limit": 10}
    rows = database.connect(database.consumer_dsn).execute(statement, values).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert f"Index Scan using outbox_{today:%Y%m%d}_pkey" in plan
    assert f"_{before:%Y%m%d}" not in plan
