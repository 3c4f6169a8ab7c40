"""Day partitions: made ahead, behind nobody's back, and dropped only when nothing needs them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import psycopg
import pytest
from psycopg import errors

from connectors.postgres import migrate
from tests.integration.postgres.conftest import Conn, Connect

APPEND = (
    "INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, payload)"
    " VALUES (uuidv7(make_interval(days => %s)), 'acme', 'loans', 'L-1', 'loans.initiated', '{}')"
)
WHERE = (
    "SELECT tableoid::regclass::text, event_id::text, position, recorded_at"
    " FROM platform.outbox ORDER BY position"
)


@pytest.fixture
def db(spare_database: str, connect: Connect) -> Conn:
    """A migrated database of the test's own, as the owner: partitions are not a tenant's."""
    conn = connect(spare_database)
    migrate.migrate(conn, ["loans"])
    conn.execute("INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES ('acme', 'Acme', now())")
    return conn


@pytest.fixture
def beside(spare_database: str, db: Conn) -> Iterator[Conn]:
    """A second session of the owner's, not in autocommit."""
    with psycopg.connect(spare_database) as conn:
        yield conn


def today(conn: Conn) -> date:
    row = conn.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()
    assert row is not None
    return date(row[0].year, row[0].month, row[0].day)


def value(conn: Conn, query: str, *args: object) -> object:
    row = conn.execute(query.encode(), args).fetchone()
    assert row is not None
    return row[0]


def gaps(conn: Conn, days: int) -> list[date]:
    return [row[0] for row in conn.execute("SELECT platform.partition_gaps(%s)", [days]).fetchall()]


def test_coming_days_exist_after_a_migration(db: Conn) -> None:
    assert gaps(db, 15) == []
    assert len(gaps(db, 20)) == 5


def test_making_them_again_changes_nothing(db: Conn) -> None:
    first = today(db) + timedelta(days=15)
    assert value(db, "SELECT platform.ensure_partitions(%s, 3)", first) == 6, "outbox and decision"
    assert value(db, "SELECT platform.ensure_partitions(%s, 3)", first) == 0
    assert gaps(db, 18) == []


def test_too_many_at_once_are_refused(db: Conn) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute("SELECT platform.ensure_partitions(current_date, 401)")
    assert caught.value.sqlstate == "TO101"


def test_made_behind_an_open_insert_without_blocking_the_next(
    db: Conn, beside: Conn, connect: Connect
) -> None:
    beside.execute(APPEND, [0])
    assert value(db, "SELECT platform.ensure_partitions(%s, 1)", today(db) + timedelta(days=15)) == 2
    beside.execute(APPEND, [0])
    beside.commit()
    assert len(db.execute(WHERE).fetchall()) == 2


def test_gives_up_soon_behind_an_open_insert_into_the_default(db: Conn, beside: Conn) -> None:
    """Whoever waits for ACCESS EXCLUSIVE stops all newcomers, so it waits for a moment only."""
    beside.execute(APPEND, [20])
    with pytest.raises(errors.LockNotAvailable):
        db.execute("SELECT platform.ensure_partitions(%s, 1)", [today(db) + timedelta(days=15)])
    beside.commit()
    assert value(db, "SELECT platform.ensure_partitions(%s, 1)", today(db) + timedelta(days=15)) == 2


def test_the_default_catches_and_hands_over(db: Conn) -> None:
    day = today(db) + timedelta(days=20)
    db.execute(APPEND, [20])
    caught = db.execute(WHERE).fetchall()
    assert [row[0] for row in caught] == ["platform.outbox_default"]
    db.execute("SELECT platform.ensure_partitions(%s, 1)", [day])
    moved = db.execute(WHERE).fetchall()
    assert [row[0] for row in moved] == [f"platform.outbox_{day:%Y%m%d}"]
    assert [row[1:] for row in moved] == [row[1:] for row in caught], (
        "id, position and time of recording stay"
    )


def test_partitions_are_guarded_and_nothing_is_granted_on_them(db: Conn) -> None:
    rows = db.execute(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, c.relacl FROM pg_inherits i"
        " JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = ANY ('{platform.outbox,platform.decision}'::regclass[])"
    ).fetchall()
    assert len(rows) >= 34
    assert [row for row in rows if not row[1] or row[2] is not None] == []


def test_an_expired_day_is_dropped_from_both(db: Conn) -> None:
    day = today(db) + timedelta(days=3)
    later = day + timedelta(days=16)
    assert (day,) in db.execute("SELECT platform.expired_days(%s)", [later]).fetchall()
    assert value(db, "SELECT platform.drop_day(%s, %s)", day, later) == 2
    assert value(db, "SELECT platform.drop_day(%s, %s)", day, later) == 0
    assert gaps(db, 15) == [day]


def test_a_day_within_the_horizon_stays(db: Conn) -> None:
    day = today(db)
    for as_of in (day, day + timedelta(days=14)):
        with pytest.raises(psycopg.Error) as caught:
            db.execute("SELECT platform.drop_day(%s, %s)", [day, as_of])
        assert caught.value.sqlstate == "TO102"


def test_a_day_with_a_row_recorded_later_stays(db: Conn) -> None:
    """An import gives rows ids of its first start: their day is older than they are."""
    yesterday = today(db) - timedelta(days=1)
    db.execute(APPEND, [-1])
    with pytest.raises(psycopg.Error) as caught:
        db.execute("SELECT platform.drop_day(%s, %s)", [yesterday, yesterday + timedelta(days=15)])
    assert caught.value.sqlstate == "TO102"


def test_a_day_that_a_subscribed_group_owes_stays(db: Conn) -> None:
    day, later = today(db), today(db) + timedelta(days=30)
    db.execute(
        "INSERT INTO platform.group_subscription VALUES ('supersession.loans', 'events.loans', '-infinity')"
    )
    db.execute(APPEND, [0])
    with pytest.raises(psycopg.Error, match=r"supersession\.loans has not decided") as caught:
        db.execute("SELECT platform.drop_day(%s, %s)", [day, later])
    assert caught.value.sqlstate == "TO103"
    db.execute(
        "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)"
        " SELECT event_id, tenant_id, 'supersession.loans', 'scheduled', now() FROM platform.outbox"
    )
    assert value(db, "SELECT platform.drop_day(%s, %s)", day, later) == 2


def test_an_id_belongs_to_the_day_of_its_time(db: Conn) -> None:
    db.execute("SET timezone TO 'Pacific/Auckland'")
    for instant, day in (
        ("2026-11-30T00:00:00Z", "2026-11-30"),
        ("2026-11-30T23:59:59.999Z", "2026-11-30"),
        ("1970-01-01T00:00:00Z", "1970-01-01"),
    ):
        assert value(db, "SELECT platform.id_day(platform.id_floor(%s::timestamptz))::text", instant) == day


def test_bounds_are_days_in_utc(db: Conn) -> None:
    db.execute("SET timezone TO 'Pacific/Auckland'")
    row = db.execute(
        "SELECT platform.day_floor('2026-11-30'::date)::text,"
        " platform.day_floor('2026-11-30 23:59:59.9Z'::timestamptz)::text,"
        " platform.id_floor('2026-11-30T00:00:00.001Z')::text"
    ).fetchone()
    midnight = (1_795_996_800_000).to_bytes(6).hex()
    head = f"{midnight[:8]}-{midnight[8:]}"
    rest = "0000-0000-000000000000"
    assert row == (f"{head}-{rest}", f"{head}-{rest}", f"{head[:-1]}1-{rest}")
