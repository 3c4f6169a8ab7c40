"""The migrations as files: what can be told without a database."""

from __future__ import annotations

from importlib.resources import files

from connectors.postgres import catalog, migrate


def test_numbered_without_a_gap_and_none_left_out() -> None:
    known = migrate.known()
    assert [migration.version for migration in known] == list(range(1, len(known) + 1))
    present = [file.name for file in files("schemas.sql.migrations").iterdir() if file.name.endswith(".sql")]
    assert len(present) == len(known)


def test_the_ddl_prints_without_a_connection() -> None:
    ddl = catalog.ddl()
    for part in (
        "CREATE ROLE",
        "CREATE DATABASE tellonce",
        "CREATE PUBLICATION tellonce_outbox",
        "0001_foundation.sql",
    ):
        assert part in ddl
    assert ddl.index("schema_migration") < ddl.index("platform.outbox")


def test_no_table_of_tenants_is_left_unguarded() -> None:
    ddl = catalog.ddl()
    for table in (
        "tenant",
        "tenant_grant",
        "import",
        "outbox",
        "decision",
        "nudge",
        "journey_progress",
        "dead_letter",
    ):
        assert f"guard_rows('platform.{table}')" in ddl
