"""What goes in as an array comes out of Postgres as the same list."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.runtime.arrays import nullable_array, text_array
from deploy.local.stack import Stack

TEXT = st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12
) | st.sampled_from(["null", "NULL", "", "{}", '"', "\\", '","', "a,b", '\\"'])


@pytest.fixture
def conn(pg_only: Stack) -> Iterator[psycopg.Connection]:
    with psycopg.connect(pg_only.consumer_dsn, autocommit=True) as conn:
        yield conn


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(TEXT | st.none(), max_size=8))
def test_any_text_survives(conn: psycopg.Connection, values: list[str | None]) -> None:
    row = conn.execute("SELECT %s::text[]", (nullable_array(values),)).fetchone()
    assert row == (values,)
    plain = [value for value in values if value is not None]
    row = conn.execute("SELECT %s::text[]", (text_array(plain),)).fetchone()
    assert row == (plain,)
