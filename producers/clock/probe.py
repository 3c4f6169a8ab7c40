"""Is the past complete? The probe that stands before everything that fires: set-based, for many subjects
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from connectors.postgres import sql

_queries = sql.load("producers.clock", "queries.sql")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose past is asked about: a tenant's lead, case or order of one product."""

    tenant_id: str
    product: str
    subject_id: str

    @property
    def deciding_group(self) -> str:
        """The group whose decisions make a journey's past complete."""
        return f"supersession.{self.product}"


def incomplete(conn: Connection[Any], subjects: Sequence[Subject]) -> set[Subject]:
    """Those subjects with an `events.<product>` outbox row that supersession has not decided: nothing of
    theirs may fire yet. One statement, one indexed probe per subject; it sees what the transaction's
    snapshot sees.
    """
    if not subjects:
        return set()
    rows = conn.execute(
        _queries["incomplete"],
        {
            "groups": [subject.deciding_group for subject in subjects],
            "tenants": [subject.tenant_id for subject in subjects],
            "products": [subject.product for subject in subjects],
            "subjects": [subject.subject_id for subject in subjects],
        },
    ).fetchall()
    return {subjects[place - 1] for (place,) in rows}
