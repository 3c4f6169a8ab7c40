"""Whatever two writers believe, the database lets one live nudge of a lead through; without its index it would not."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from deploy.local.stack import Stack


@contextmanager
def _without_the_index(stack: Stack) -> Iterator[None]:
    with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
        owner.execute("DROP INDEX platform.nudge_one_live_per_lead")
        try:
            yield
        finally:
            owner.execute("DELETE FROM platform.nudge WHERE tenant_id LIKE 'race-%'")
            owner.execute(
                "CREATE UNIQUE INDEX nudge_one_live_per_lead ON platform.nudge (tenant_id, product, subject_id)"
                " WHERE state IN ('scheduled', 'pending')"
            )


def _race(stack: Stack) -> int:
    """Two writers that each read "nothing live" insert at once, as check-then-act does; how many are live."""
    tenant = f"race-{uuid.uuid4().hex[:16]}"
    barrier = threading.Barrier(2)

    def insert(conn: psycopg.Connection[Any], number: int) -> None:
        with conn.transaction():
            live = conn.execute(
                "SELECT count(*) FROM platform.nudge WHERE tenant_id = %s", (tenant,)
            ).fetchone()
            assert live == (0,)
            barrier.wait(timeout=10)
            conn.execute(
                "INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, due_at,"
                " created_at, updated_at) VALUES (%s, %s, 'loans', 'L', 'k', 's', uuidv7(), now(), now(), now())",
                (f"019a0000-0000-8000-8000-{uuid.uuid4().hex[:11]}{number}", tenant),
            )

    refused = _in_threads(stack, insert)
    assert all(isinstance(error, psycopg.errors.UniqueViolation) for error in refused)
    with psycopg.connect(stack.owner_dsn) as owner:
        row = owner.execute(
            "SELECT count(*) FROM platform.nudge WHERE tenant_id = %s AND state = 'scheduled'", (tenant,)
        ).fetchone()
    assert row is not None
    return int(row[0])


def _in_threads(stack: Stack, work: Callable[[psycopg.Connection[Any], int], None]) -> list[BaseException]:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        with psycopg.connect(stack.consumer_dsn, autocommit=True) as conn:
            try:
                work(conn, number)
            except psycopg.Error as error:
                failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_the_unique_index_lets_one_of_two_racing_writers_through(pg_only: Stack) -> None:
    assert _race(pg_only) == 1


def test_without_the_unique_index_two_nudges_live(pg_only: Stack) -> None:
    with _without_the_index(pg_only):
        assert _race(pg_only) == 2
