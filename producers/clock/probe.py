"""Is the past complete? The probe that stands before everything that fires: set-based, for many subjects
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import Connection

from connectors.postgres import sql

_queries = sql.load("producers.clock", "queries.sql")


DECIDING = "supersession."
"""With a product's name, the group whose decisions make the past of its journeys complete."""


class Subject(NamedTuple):
    """Whose past is asked about: a tenant's lead, case or order of one product."""

    tenant_id: str
    product: str
    subject_id: str


def incomplete(conn: Connection[Any], subjects: Sequence[Subject]) -> set[Subject]:
    """Those subjects with an `events.<product>` outbox row that supersession has not decided: nothing of
    theirs may fire yet. One statement; it sees what the transaction's snapshot sees. A transaction that asks says
    `SET LOCAL enable_seqscan = off` before, because what the planner believes of a day that has just begun is wrong.
    """
    if not subjects:
        return set()
    rows = conn.execute(
        _queries["incomplete"],
        {
            "groups_of": DECIDING,
            "keys": [f"{subject.tenant_id}:{subject.subject_id}" for subject in subjects],
            "topics": sorted({f"events.{subject.product}" for subject in subjects}),
        },
    )
    return {Subject(*row) for row in rows}.intersection(subjects)
