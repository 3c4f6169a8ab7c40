"""`tellonce why`: each event of a subject, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

import psycopg
import typer
from psycopg.rows import class_row
from rich.console import Group, RenderableType
from rich.text import Text

from connectors.postgres.sql import load
from deploy.cli import session
from deploy.cli.delivered import deliveries, told
from deploy.cli.exits import Exit
from deploy.cli.messages import Notice, by_notice, headed
from deploy.cli.options import LOOKING, Json, examples
from deploy.cli.output import complain, emit, moment, printable, show, table
from deploy.cli.story import Letter, Line, Row, place_notified, tell
from schemas.platform_events import nudge_due
from schemas.states import DecisionOutcome

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
    """Each event of a subject, and what became of it, to the provider's answer.

    In the order of their commits (the outbox's position), what the clock said of its nudges among them, with the
    reason in words and each message to each person; dead letters that have no row there, where they were met.
    Exit 1 when nothing is known of the subject.
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
            reached, began, ended = conn.execute(QUERIES.journey, of_product).fetchone() or ([], None, None)
            found.append(Why(tenant, name, subject, reached, began, ended, _events(conn, of_product)))
    return found


def _events(conn: psycopg.Connection[Any], of_product: Mapping[str, str]) -> list[Line]:
    """Each event and each timer with what was decided, and with whom was told what."""
    timers = {
        nudge_id: nudge_due(cause, of_product["tenant"], nudge_id).event_id
        for nudge_id, cause in conn.execute(QUERIES.nudges_of_subject, of_product)
    }
    rows = [
        Row(*row) for row in conn.execute(QUERIES.told, {**of_product, "timer_ids": list(timers.values())})
    ]
    letters = [Letter(*row) for row in conn.execute(QUERIES.undecided_letters, of_product)]
    lines = tell(rows, letters)
    with conn.cursor(row_factory=class_row(Notice)) as cursor:
        notices = cursor.execute(QUERIES.notices, of_product).fetchall()
    of_subject = deliveries(
        conn,
        tenant=of_product["tenant"],
        product=of_product["product"],
        subject=of_product["subject"],
    )
    place_notified(lines, by_notice(notices, told(conn, of_subject)), timers)
    return lines


def rendered(story: Why) -> RenderableType:
    """A story for people."""
    reached = " → ".join(name.partition(".")[2] for name in story.reached) or "nothing yet"
    head = Text(printable(f"{story.tenant} · {story.product} · {story.subject}"), style="bold")
    ended = f", ended {moment(story.ended_at)}" if story.ended_at else ""
    return Group(
        head,
        Text(printable(f"reached: {reached}{ended}")),
        table(
            ("event", "happened", "what became of it"), (row for line in story.events for row in _rows(line))
        ),
        "",
    )


def _rows(line: Line) -> Iterator[tuple[object, object, object]]:
    """An event's decisions, then each message; "nothing here is about it" is said only when nobody says more."""
    said = [decision.words for decision in line.decisions if decision.outcome != DecisionOutcome.IGNORED]
    said = said or [decision.words for decision in line.decisions[:1]]
    if not said and not line.notified:
        said = ["on its way: not decided yet"]
    said += [f"→ {headed(message)}" for each in line.notified for message in each.messages]
    first, *others = said or ["-"]
    yield line.event_type, line.occurred_at, first
    yield from ((" ", " ", each) for each in others)
