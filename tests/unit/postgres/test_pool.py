"""What a session is told, and what of a DSN is shown."""

from __future__ import annotations

import traceback

import pytest
from psycopg import conninfo

from connectors.postgres import pool

DSN = "postgresql://svc:s3cret@db.example:5433/tellonce?sslmode=require"


def test_a_session_has_a_name_and_limits() -> None:
    session = conninfo.conninfo_to_dict(pool.session(DSN, "supersession.loans", lock_timeout_ms=0))
    assert session["application_name"] == "supersession.loans"
    assert session["password"] == "s3cret"
    assert session["sslmode"] == "require"
    options = str(session["options"])
    assert f"statement_timeout={pool.STATEMENT_TIMEOUT_MS}" in options
    assert "lock_timeout=0" in options
    assert "timezone=UTC" in options


def test_what_the_dsn_sets_wins() -> None:
    given = conninfo.make_conninfo(
        DSN, connect_timeout=1, application_name="mine", options="-c statement_timeout=7"
    )
    session = conninfo.conninfo_to_dict(pool.session(given, "ours"))
    assert (str(session["connect_timeout"]), session["application_name"]) == ("1", "mine")
    assert str(session["options"]).endswith("-c statement_timeout=7")


def test_a_described_dsn_has_no_password() -> None:
    assert pool.describe(DSN) == "user=svc host=db.example port=5433 dbname=tellonce"
    assert pool.describe("") == "(environment)"


@pytest.mark.parametrize(
    "dsn", ["postgresql//svc:s3cret@db/tellonce", "postgresql://svc:s3%ZZcret@db", "password=s3cret tellonce"]
)
def test_what_is_no_address_is_not_shown(dsn: str) -> None:
    for use in (pool.describe, lambda given: pool.connect(given, "ours")):
        with pytest.raises(pool.InvalidAddressError, match="neither postgresql://user") as raised:
            use(dsn)
        assert "cret" not in "".join(traceback.format_exception(raised.value))
