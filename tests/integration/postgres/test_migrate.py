"""Migrations replay to exactly the committed schema, once each, and a program refuses any other."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from connectors.postgres import catalog, migrate
from tests.integration.postgres.conftest import Connect


def test_migrations_replay_to_exactly_the_snapshot(spare_database: str, connect: Connect) -> None:
    owner = connect(spare_database)
    assert [m.version for m in migrate.migrate(owner)] == [m.version for m in migrate.known()]
    described = catalog.describe(owner)
    refresh = "python -m connectors.postgres.catalog DSN > schemas/sql/schema.snapshot"
    assert described == catalog.snapshot(), f"review the difference, then: {refresh}"


def test_again_changes_nothing(spare_database: str, connect: Connect) -> None:
    owner = connect(spare_database)
    migrate.migrate(owner, ["loans"])
    before = catalog.describe(owner)
    assert migrate.migrate(owner, ["loans"]) == []
    assert catalog.describe(owner) == before


def test_several_at_once_apply_each_once(spare_database: str, connect: Connect) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: len(migrate.migrate(connect(spare_database))), range(4)))
    assert sum(applied) == len(migrate.known())
    migrate.verify(connect(spare_database))


def test_an_empty_database_is_refused_with_the_way_out(spare_database: str, connect: Connect) -> None:
    with pytest.raises(
        migrate.SchemaVersionError, match=r"version 0, this program needs \d+: run `tellonce migrate`"
    ):
        migrate.verify(connect(spare_database))


def test_an_older_schema_is_refused(
    spare_database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, known = connect(spare_database), migrate.known()
    with monkeypatch.context() as older:
        older.setattr(migrate, "known", lambda: known[:-1])
        migrate.migrate(owner)
    with pytest.raises(
        migrate.SchemaVersionError, match=f"version {len(known) - 1}, this program needs {len(known)}"
    ):
        migrate.verify(owner)
    assert migrate.migrate(owner) == [known[-1]]
    migrate.verify(owner)


def test_a_newer_schema_is_refused(spare_database: str, connect: Connect) -> None:
    owner = connect(spare_database)
    migrate.migrate(owner)
    owner.execute(
        "INSERT INTO platform.schema_migration (version, name, checksum) VALUES (%s, 'future', 'x')",
        [len(migrate.known()) + 1],
    )
    for act in (migrate.verify, migrate.migrate):
        with pytest.raises(migrate.SchemaVersionError, match="deploy a newer tellonce"):
            act(owner)


def test_an_edited_migration_is_refused(spare_database: str, connect: Connect) -> None:
    owner = connect(spare_database)
    migrate.migrate(owner)
    owner.execute("UPDATE platform.schema_migration SET checksum = 'other' WHERE version = 2")
    for act in (migrate.verify, migrate.migrate):
        with pytest.raises(migrate.SchemaVersionError, match="0002_stream with another content"):
            act(owner)


def test_a_failing_migration_leaves_the_one_before(
    spare_database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, known = connect(spare_database), migrate.known()
    broken = migrate.Migration(len(known) + 1, "broken", "CREATE TABLE platform.half (); SELECT 1 / 0;")
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "known", lambda: (*known, broken))
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate.migrate(owner)
    assert owner.execute("SELECT to_regclass('platform.half')").fetchone() == (None,)
    migrate.verify(owner)


def test_inside_a_transaction_it_refuses_to_begin(spare_database: str) -> None:
    with psycopg.connect(spare_database) as conn:
        conn.execute("SELECT 1")
        with pytest.raises(RuntimeError, match="not inside a transaction"):
            migrate.migrate(conn)


def test_products_are_registered_once(spare_database: str, connect: Connect) -> None:
    owner = connect(spare_database)
    migrate.migrate(owner, ["loans"])
    assert migrate.register_products(owner, ["worklog", "loans"]) == ["worklog"]
    assert migrate.register_products(owner, ["worklog", "loans"]) == []
    with pytest.raises(psycopg.errors.CheckViolation):
        migrate.register_products(owner, ["No Product"])


def test_checksums_are_of_the_text() -> None:
    first = migrate.known()[0]
    assert first.checksum == hashlib.sha256(first.text.encode()).hexdigest()
