"""The session a group works in, and the plans it gets there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import conninfo

from connectors.postgres.sql import Queries
from consumers.preparation import queries as preparation
from consumers.runtime import batch, process
from consumers.runtime.database import Database
from consumers.supersession import consumer
from consumers.supersession.consumer import Supersession
from deploy.local.stack import Stack
from schemas.products.catalogue import Catalogue

LOOK_UPS = [
    (batch.QUERIES, "probe"),
    (consumer.QUERIES, "lock_leads"),
    (consumer.QUERIES, "live_nudges"),
    (consumer.QUERIES, "cancel_nudges"),
    (consumer.QUERIES, "causes"),
    (preparation.QUERIES, "holders"),
    (preparation.QUERIES, "people"),
]


@pytest.fixture
def session(pg_only: Stack) -> Iterator[psycopg.Connection[Any]]:
    database = Database(conninfo.make_conninfo(pg_only.consumer_dsn, options="-c work_mem=7MB"), "test")
    yield database.connection()
    database.close()


def test_options_of_the_address_and_our_own_both_count(session: psycopg.Connection[Any]) -> None:
    assert session.execute("SHOW work_mem").fetchone() == ("7MB",)
    assert session.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)
    assert session.execute("SHOW lock_timeout").fetchone() == ("10s",)


def test_horizon_and_limit_are_the_installation_s(
    pg_only: Stack, session: psycopg.Connection[Any], catalogue: Catalogue
) -> None:
    group = Supersession(catalogue.product("loans").product)
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as owner:
        set_to = owner.execute("SELECT horizon, payload_limit FROM platform.installation").fetchone()
    assert process._subscribe(session, group) == set_to


@pytest.mark.parametrize(("queries", "name"), LOOK_UPS, ids=[name for _, name in LOOK_UPS])
def test_a_look_up_descends_an_index_for_each_record(
    session: psycopg.Connection[Any], queries: Queries, name: str
) -> None:
    """Whatever the planner thinks of the table: of one that was empty when the plan was made it would read
    everything, once per batch, and go on doing so.
    """
    names = list(dict.fromkeys(re.findall(rb"%\((\w+)\)s", queries[name])))
    statement = re.sub(rb"%\((\w+)\)s", lambda found: b"$%d" % (names.index(found[1]) + 1), queries[name])
    row = session.execute(b"EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + statement).fetchone()
    assert row is not None
    nodes = list(_nodes(row[0][0]["Plan"]))
    of_tables = [node for node in nodes if "Relation Name" in node and node["Node Type"] != "ModifyTable"]
    assert of_tables
    for node in of_tables:
        condition = node.get("Index Cond") or node.get("TID Cond") or ""
        assert re.search(r"record\.|lead\.|wanted\.|gone\.|found\.|unnest", condition), node


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
