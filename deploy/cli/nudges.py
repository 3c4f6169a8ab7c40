"""`tellonce nudges`: what is due, and what was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from psycopg.rows import class_row

from connectors.postgres.sql import load
from deploy.cli import session
from deploy.cli.options import LOOKING, Json, Limit, examples, instant
from deploy.cli.output import emit, show, table
from schemas.states import NudgeState

QUERIES = load("deploy.cli", "queries.sql")
LIVE = [state.value for state in NudgeState if state.is_live]

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class NudgeLine:
    """A nudge as it is now."""

    nudge_id: str
    tenant_id: str
    product: str
    subject_id: str
    kind: str
    step: str
    state: str
    due_at: datetime
    reason: str | None
    superseded_by: str | None
    cancelled_by: str | None
    event_id: str
    created_at: datetime
    updated_at: datetime


@app.command(
    rich_help_panel=LOOKING,
    epilog=examples(
        "tellonce nudges --tenant acme",
        "tellonce nudges --tenant acme --subject L-1 --all",
        "tellonce nudges --state cancelled --kind loans.view_offers --json",
    ),
)
def nudges(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    product: Annotated[str | None, typer.Option(help="Of this product.")] = None,
    subject: Annotated[str | None, typer.Option(help="Of this subject.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of this kind.")] = None,
    state: Annotated[list[NudgeState] | None, typer.Option(help="In this state; may come again.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="In any state; without it the live ones.")] = False,
    due_before: Annotated[str | None, typer.Option(help="Due before this instant.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """The live nudges by due time, or those that the options name.

    A lead has at most one that is live.
    """
    chosen = [each.value for each in state] if state else None if all_ else LIVE
    parameters = {
        "states": chosen,
        "tenant": tenant,
        "product": product,
        "subject": subject,
        "kind": kind,
        "due_before": instant(due_before) if due_before else None,
        "limit": limit,
    }
    with session.reader() as conn, conn.cursor(row_factory=class_row(NudgeLine)) as cursor:
        found = cursor.execute(QUERIES.nudges, parameters).fetchall()
    if json:
        emit(found)
        return
    show(
        table(
            ("due", "tenant", "subject", "kind", "state", "reason"),
            ((n.due_at, n.tenant_id, n.subject_id, n.kind, n.state, n.reason) for n in found),
        )
    )
