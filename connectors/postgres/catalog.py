"""The schema as readable text: what the migrations say, and what the database has.

`ddl()` needs no connection. `describe()` asks the catalog; `schemas/sql/schema.snapshot` is its committed
answer, and a test holds the two equal, so that a migration's effect shows in review as a diff. After a new
migration:

    python -m connectors.postgres.catalog DSN > schemas/sql/schema.snapshot
"""

from __future__ import annotations

import sys
from importlib.resources import files
from itertools import groupby
from typing import Any

from psycopg import Connection

from connectors.postgres import migrate, sql

_CATALOG = sql.load("schemas.sql", "catalog.sql")


def ddl() -> str:
    """All SQL that makes a database ours, in order: bootstrap, ledger, migrations."""
    parts = [("bootstrap.sql", _text("bootstrap.sql")), ("ledger.sql: create", _LEDGER_DDL.decode())]
    parts += [(f"{m.version:04}_{m.name}.sql", m.text) for m in migrate.known()]
    return "\n".join(f"-- ==== {name} ====\n{text.strip()}\n" for name, text in parts)


def describe(conn: Connection[Any]) -> str:
    """Tables with columns, constraints, indexes, triggers, policies, grants; types, functions, publications.

    Without day partitions and tenants' schemas, which come and go. Equal for equal schemas; ask as the owner.
    """
    with conn.transaction():
        conn.execute("SET LOCAL search_path TO pg_catalog")
        rows = conn.execute(_CATALOG.describe).fetchall()
    lines = []
    for (section, name), facts in groupby(rows, key=lambda row: (row[0], row[1])):
        lines.append(f"{section} {name}")
        lines.extend(f"  {fact}" for _, _, fact in facts)
        lines.append("")
    return "\n".join(lines)


def snapshot() -> str:
    """The committed description, which every migrated database matches."""
    return _text("schema.snapshot")


def _text(file: str) -> str:
    return files("schemas.sql").joinpath(file).read_text("utf-8")


_LEDGER_DDL = sql.load("schemas.sql", "ledger.sql").create

if __name__ == "__main__":
    with Connection.connect(sys.argv[1]) as connection:
        sys.stdout.write(describe(connection))
