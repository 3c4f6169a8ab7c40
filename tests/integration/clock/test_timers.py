"""One transaction of firing: what is due and whose past is complete fires, once; nothing else does."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from connectors import tracing
from producers import tenants
from producers.clock import time as clock_time
from producers.clock import timers
from schemas.platform_events import NUDGE_DUE, nudge_due
from tests.integration.clock.conftest import TENANT, Database
from tests.integration.clock.nudges import Nudges

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def nudges(database: Database) -> Nudges:
    return Nudges(database)


def fire(database: Database) -> timers.Fired:
    with database.connect(database.consumer_dsn) as conn:
        return timers.fire(conn)


def test_a_due_nudge_becomes_pending_and_is_told(database: Database, nudges: Nudges) -> None:
    nudges.arm(["later"], HOUR)
    (nudge_id,) = nudges.arm(["lead"])
    done = fire(database)
    assert (done.fired, done.held_back, done.full) == ({"loans": 1}, {}, False)
    assert (nudges.in_state("pending"), nudges.in_state("scheduled")) == ({"lead"}, {"later"})
    ((cause, due_at),) = database.run(
        "SELECT event_id::text, due_at FROM platform.nudge WHERE nudge_id = %s", nudge_id
    )
    told = nudge_due(cause, TENANT, nudge_id)
    assert nudges.records() == [
        {
            "event_id": told.event_id,
            "tenant_id": TENANT,
            "message_key": f"{TENANT}:lead",
            "event_type": NUDGE_DUE,
            "payload": told.payload,
            "occurred_at": due_at,
            "traceparent": "00-lead",
        }
    ]
    assert fire(database).idle


def test_due_is_by_the_clock_and_late_is_in_its_seconds(database: Database, nudges: Nudges) -> None:
    nudges.arm(["lead"], HOUR)
    assert fire(database).idle
    clock_time.move(database.connect(database.owner_dsn), 2 * HOUR)
    done = fire(database)
    assert done.fired == {"loans": 1}
    assert done.latest_s == pytest.approx(3600, abs=10)


def test_nothing_fires_while_an_event_of_its_subject_is_undecided(database: Database, nudges: Nudges) -> None:
    nudges.arm(["behind", "ready"])
    (event_id,) = database.happened("behind")
    done = fire(database)
    assert (done.fired, done.held_back) == ({"loans": 1}, {"loans": 1})
    assert nudges.in_state("scheduled") == {"behind"}

    nudges.retry_now()
    assert fire(database).held_back == {"loans": 1}
    database.decided(event_id)
    nudges.retry_now()
    assert fire(database).fired == {"loans": 1}
    assert nudges.in_state("pending") == {"behind", "ready"}


def test_those_that_wait_are_never_first_in_line(database: Database, nudges: Nudges) -> None:
    behind = [f"behind-{n}" for n in range(timers.BATCH + 200)]
    nudges.arm(behind, -HOUR)
    database.happened(*behind)
    while (done := fire(database)).full:
        assert not done.fired
    nudges.arm(["ready"])
    nudges.retry_now()
    done = fire(database)
    assert done.fired == {"loans": 1}
    assert done.held_back == {"loans": timers.RETRIES}


def test_a_retry_waits_as_long_again_between_bounds(database: Database, nudges: Nudges) -> None:
    nudges.arm(["lead"])
    database.happened("lead")

    def waits_s(waited_s: float) -> float:
        database.run(
            "UPDATE platform.nudge SET retry_at = now(), waits_since = now() - make_interval(secs => %s)"
            " WHERE waits_since IS NOT NULL",
            waited_s,
        )
        assert fire(database).held_back == {"loans": 1}
        since, again = nudges.waits("lead")
        assert since is not None
        assert again is not None
        return (again - since).total_seconds() - waited_s

    assert waits_s(0) == pytest.approx(timers.SHORTEST_WAIT.total_seconds(), abs=0.05)
    assert waits_s(4) == pytest.approx(4, abs=0.5)
    assert waits_s(3600) == pytest.approx(timers.LONGEST_WAIT.total_seconds(), abs=0.5)


def test_one_that_waits_is_an_ordinary_timer_again_when_time_is_moved_back(
    database: Database, nudges: Nudges
) -> None:
    nudges.arm(["lead"])
    database.happened("lead")
    assert fire(database).held_back == {"loans": 1}
    owner = database.connect(database.owner_dsn)
    clock_time.move(owner, -HOUR)
    nudges.retry_now()
    assert fire(database).put_back == 1
    assert nudges.waits("lead") == (None, None)
    assert fire(database).idle


@pytest.mark.parametrize("how", ["suspended", "held"])
def test_a_tenant_that_is_suspended_or_held_fires_nothing(
    database: Database, nudges: Nudges, how: str
) -> None:
    owner = database.connect(database.owner_dsn)
    nudges.arm(["lead"], -HOUR)
    nudges.arm(["waiting"], -HOUR)
    database.happened("waiting")
    assert fire(database).fired == {"loans": 1}
    nudges.arm(["next"], -HOUR)
    nudges.retry_now()
    if how == "suspended":
        tenants.suspend(owner, TENANT)
    else:
        tenants.hold(owner, TENANT)
    assert fire(database).idle
    with database.connect(database.consumer_dsn) as conn:
        ahead = timers.outlook(conn, idle=True)
        assert (ahead.due_at, ahead.retry_at) == (None, None)
        assert timers.waiting(conn, 10).nudges == 0
    if how == "suspended":
        tenants.resume(owner, TENANT)
    else:
        tenants.release(owner, TENANT)
    done = fire(database)
    assert (done.fired, done.held_back) == ({"loans": 1}, {"loans": 1})


def test_what_somebody_else_has_locked_is_passed_over(database: Database, nudges: Nudges) -> None:
    nudges.arm(["busy", "free"])
    other = database.connect(database.consumer_dsn)
    with other.transaction():
        other.execute("SELECT FROM platform.nudge WHERE subject_id = 'busy' FOR UPDATE")
        assert fire(database).fired == {"loans": 1}
        assert fire(database).idle
    assert fire(database).fired == {"loans": 1}


def test_a_nudge_that_supersession_cancels_meanwhile_does_not_fire(
    database: Database, nudges: Nudges
) -> None:
    nudges.arm(["lead"])
    database.run("UPDATE platform.nudge SET state = 'cancelled', reason = 'ended'")
    assert fire(database).idle
    assert nudges.records() == []


def test_several_clocks_fire_each_nudge_once(database: Database, nudges: Nudges) -> None:
    leads = [f"lead-{n}" for n in range(3 * timers.BATCH)]
    nudges.arm(leads)
    fired: list[int] = []

    def clock(dsn: str) -> None:
        conn = database.connect(dsn)
        while not (done := timers.fire(conn)).idle:
            fired.append(done.fired.total())

    threads = [threading.Thread(target=clock, args=[database.consumer_dsn]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(fired) == len(leads)
    assert nudges.in_state("pending") == set(leads)
    records = nudges.records()
    assert len(records) == len({record["event_id"] for record in records}) == len(leads)


def test_a_tenants_backlog_does_not_hold_up_another(database: Database, nudges: Nudges) -> None:
    nudges.arm([f"lead-{n}" for n in range(3 * timers.BATCH)], -HOUR)
    nudges.arm(["small"], tenant=nudges.tenant("z-small"))
    fire(database)
    assert "small" in nudges.in_state("pending")


def test_tenants_take_turns(database: Database, nudges: Nudges) -> None:
    names = [nudges.tenant(f"t-{n:02}") for n in range(2 * timers.BATCH // timers.SHARE)]
    for name in names:
        nudges.arm([f"{name}-{n}" for n in range(timers.SHARE + 1)], tenant=name)
    conn = database.connect(database.consumer_dsn)
    last = timers.fire(conn).last_tenant
    timers.fire(conn, last)
    assert {subject[:4] for subject in nudges.in_state("pending")} == set(names)


def test_nudges_of_a_held_tenant_are_not_read(database: Database, nudges: Nudges) -> None:
    nudges.arm([f"lead-{n}" for n in range(5_000)], -HOUR)
    nudges.arm(["small"], tenant=nudges.tenant("z-small"))
    database.run("ANALYZE platform.nudge")
    tenants.hold(database.connect(database.owner_dsn), TENANT)
    conn = database.connect(database.consumer_dsn)
    assert timers.outlook(conn, idle=True).due_at is not None
    values = {"now": None, "real": None, "after": "", "share": timers.SHARE, "limit": timers.BATCH}
    for name in ("lock_due", "lock_waiting", "outlook"):
        rows = conn.execute(b"EXPLAIN " + timers._queries[name], values).fetchall()
        assert "Seq Scan on nudge" not in "\n".join(row[0] for row in rows)


def test_what_is_told_of_added_nudges_is_the_earliest(database: Database, nudges: Nudges) -> None:
    conn = database.connect(database.consumer_dsn)
    timers.listen(conn)
    nudges.arm(["late"], HOUR)
    nudges.arm(["later"], 2 * HOUR)
    asleep = timers.outlook(conn, idle=True)
    told = [note.payload for note in conn.notifies(timeout=5, stop_after=2)]
    (first,) = database.run("SELECT due_at FROM platform.nudge WHERE subject_id = 'late'")
    (second,) = database.run("SELECT due_at FROM platform.nudge WHERE subject_id = 'later'")
    assert told == [str(round(due[0].timestamp() * 1_000_000)) for due in (first, second)]
    assert [asleep.told(payload) for payload in told] == [asleep, asleep]


def test_each_firing_is_a_span_in_the_trace_of_its_nudge_s_cause(database: Database, nudges: Nudges) -> None:
    owner_of = dict(zip(nudges.arm(["one", "two", "waits"]), ["one", "two", "waits"], strict=True))
    traces = {"one": "1" * 32, "two": "2" * 32, "waits": "3" * 32}
    for lead, trace_id in traces.items():
        database.run(
            "UPDATE platform.outbox SET traceparent = %s WHERE subject_id = %s RETURNING event_id",
            f"00-{trace_id}-{'cd' * 8}-01",
            lead,
        )
    database.happened("waits")
    spans, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracing.recording(provider):
        assert fire(database).fired == {"loans": 2}
    told = {}
    for span in spans.get_finished_spans():
        assert (span.name, span.parent is not None) == ("fire loans", True)
        assert span.attributes is not None
        assert span.attributes["tellonce.tenant"] == TENANT
        told[owner_of[str(span.attributes["tellonce.nudge_id"])]] = f"{span.context.trace_id:032x}"
    assert told == {"one": traces["one"], "two": traces["two"]}, "what waits has not fired"
    assert {record["traceparent"] for record in nudges.records()} == {
        f"00-{traces[lead]}-{'cd' * 8}-01" for lead in ("one", "two")
    }
