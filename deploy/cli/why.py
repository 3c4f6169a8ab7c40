"""`tellonce why`: each event of a subject, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from connectors.postgres.sql import load
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.options import LOOKING, Json, examples
from deploy.cli.output import complain, emit, moment, printable, show, table
from deploy.cli.story import Letter, Line, Row, tell

QUERIES = load("deploy.cli", "queries.sql")

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class Why:
    """A subject's story in one product."""

    tenant: str
    product: str
    subject: str
    reached: list[str] = field(default_factory=list)
    epoch_began_at: datetime | None = None
    ended_at: datetime | None = None
    events: list[Line] = field(default_factory=list)


@app.command(
    rich_help_panel=LOOKING,
    epilog=examples(
        "tellonce why --tenant acme --subject L-1",
        "tellonce why --tenant acme --subject L-1 --json | jq '.[].events[].decisions[].words'",
    ),
)
def why(
    tenant: Annotated[str, typer.Option(help="The tenant's id.", show_default=False)],
    subject: Annotated[str, typer.Option(help="The lead, case or order.", show_default=False)],
    product: Annotated[str | None, typer.Option(help="Only of this product.")] = None,
    json: Json = False,
) -> None:
    """Each event of a subject, and what became of it.

    In the order of their commits (the outbox's position), with the reason in words; dead letters that have no row
    there, where they were met. Exit 1 when nothing is known of the subject.
    """
    with session.reader() as conn:
        found = ask(conn, tenant, subject, product)
    if json:
        emit(found)
    for each in found if not json else ():
        show(rendered(each))
    if not found:
        complain(f"nothing is known of subject {subject!r} of tenant {tenant!r}; `tellonce tenant list`?")
        raise typer.Exit(Exit.PROBLEMS)


def ask(conn: psycopg.Connection[Any], tenant: str, subject: str, product: str | None = None) -> list[Why]:
    """The subject's stories, one for each product that knows it; needs only to read."""
    key = {"tenant": tenant, "subject": subject}
    known = [name for (name,) in conn.execute(QUERIES.subject_products, key).fetchall()]
    found = []
    for name in known:
        if product in (None, name):
            of_product = {**key, "product": name}
            rows = [Row(*row) for row in conn.execute(QUERIES.told, of_product)]
            letters = [Letter(*row) for row in conn.execute(QUERIES.undecided_letters, of_product)]
            reached, began, ended = conn.execute(QUERIES.journey, of_product).fetchone() or ([], None, None)
            found.append(Why(tenant, name, subject, reached, began, ended, tell(rows, letters)))
    return found


def rendered(story: Why) -> RenderableType:
    """A story for people."""
    reached = " → ".join(name.partition(".")[2] for name in story.reached) or "nothing yet"
    head = Text(printable(f"{story.tenant} · {story.product} · {story.subject}"), style="bold")
    ended = f", ended {moment(story.ended_at)}" if story.ended_at else ""
    rows = [
        (line.event_type, line.occurred_at, told)
        for line in story.events
        for told in ([decision.words for decision in line.decisions] or ["on its way: not decided yet"])
    ]
    return Group(
        head,
        Text(printable(f"reached: {reached}{ended}")),
        table(("event", "happened", "what became of it"), rows),
        "",
    )
