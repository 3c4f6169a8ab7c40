"""The loader of named SQL blocks."""

from __future__ import annotations

import pytest

from connectors.postgres import sql

FILE = """\
-- A comment of the file.

-- name: one
-- What it is for.
SELECT 1
-- in the middle stays
  FROM t;

-- name: two
SELECT '%%';
"""


def test_blocks_by_name_without_their_heading_comments() -> None:
    queries = sql.parse(FILE, "a.sql")
    assert list(queries) == ["one", "two"]
    assert queries.one == queries["one"] == b"SELECT 1\n-- in the middle stays\n  FROM t;"
    assert queries.two == b"SELECT '%%';"
    assert repr(queries) == "Queries(a.sql: one, two)"


def test_an_unknown_name_lists_those_there_are() -> None:
    queries = sql.parse(FILE, "a.sql")
    with pytest.raises(sql.SqlFileError, match=r"a\.sql has no block 'three'; it has \['one', 'two'\]"):
        _ = queries.three
    with pytest.raises(AttributeError):
        _ = queries._private


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "appears twice"),
        ("-- name: a\n-- only words\n\n-- name: b\nSELECT 1;", "'a' is empty"),
        ("-- name: A-b\nSELECT 1;", "lower-case identifier"),
        ("SELECT 1;", "no block"),
        ("", "no block"),
    ],
)
def test_a_broken_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(sql.SqlFileError, match=message):
        sql.parse(text, "a.sql")


def test_a_file_is_read_once() -> None:
    assert sql.load("schemas.sql", "ledger.sql") is sql.load("schemas.sql", "ledger.sql")
