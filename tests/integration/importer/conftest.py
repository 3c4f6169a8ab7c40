"""A small log with repeats, ties and disorder, and the tenant it is imported into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from psycopg import Connection

from deploy.local.stack import Stack
from producers.importer.plan import Contract
from producers.importer.spec import ImportSpec

BEGAN = datetime(2011, 10, 1, 9, tzinfo=UTC)


class AnyFields:
    """A contract that takes a note, and any body."""

    fields: Mapping[str, object] = {"note": ["null", "string"]}

    def body(self, payload: Mapping[str, object]) -> bytes:
        return orjson.dumps(payload)


CONTRACTS: dict[str, Contract] = {"loans.initiated": AnyFields(), "loans.phone_verified": AnyFields()}


def spec_of(path: Path, tenant: str, **more: Any) -> ImportSpec:
    """How the log of these tests is to be read."""
    given: dict[str, Any] = {
        "path": path,
        "tenant": tenant,
        "product": "loans",
        "subject_column": "lead",
        "type_column": "step",
        "time_column": "at",
        "type_map": {"1": "loans.initiated", "2": "loans.phone_verified"},
        "fields": {"note": "note"},
    }
    return ImportSpec(**(given | more))


def rows_of(count: int, first: int = 0) -> list[str]:
    """CSV rows: every third is out of order, pairs share their time."""
    made = []
    for number in range(first, first + count):
        at = BEGAN + timedelta(minutes=number // 2 - (10 if number % 3 == 0 else 0))
        made.append(f"lead-{number % 17},{number % 2 + 1},{at:%Y-%m-%d %H:%M:%S},row {number}")
    return made


@pytest.fixture
def write_log(tmp_path: Path) -> Callable[[list[str]], Path]:
    def write(rows: list[str]) -> Path:
        path = tmp_path / "log.csv"
        path.write_text("\n".join(["lead,step,at,note", *rows]) + "\n")
        return path

    return write


@pytest.fixture
def owner(pg_only: Stack) -> Iterator[Connection[Any]]:
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as conn:
        yield conn
