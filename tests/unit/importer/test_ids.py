"""An imported row has an id derived from its import and the row: repeatable, ordered, version 7."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producers.importer.ids import MAX_ROWS, ImportIds

STARTED = datetime(2026, 12, 1, 9, 30, 0, 123000, tzinfo=UTC)


@given(rows=st.lists(st.integers(0, MAX_ROWS - 1), min_size=2, unique=True))
def test_ids_are_version_7_at_the_imports_start_and_grow_with_the_row(rows: list[int]) -> None:
    ids = ImportIds("a", "log", STARTED)
    made = [uuid.UUID(ids[row]) for row in sorted(rows)]
    assert made == sorted(set(made))
    for one in made:
        assert (one.version, one.variant) == (7, uuid.RFC_4122)
        assert one.int >> 80 == int(STARTED.timestamp() * 1000)


def test_the_same_row_has_the_same_id_and_another_import_or_tenant_another() -> None:
    ids = ImportIds("a", "log", STARTED)
    assert ids[7] == ImportIds("a", "log", STARTED)[7]
    assert len({ids[7], ImportIds("b", "log", STARTED)[7], ImportIds("a", "log2", STARTED)[7]}) == 3


def test_more_rows_than_the_counter_holds_are_refused() -> None:
    with pytest.raises(IndexError):
        ImportIds("a", "log", STARTED)[MAX_ROWS]
