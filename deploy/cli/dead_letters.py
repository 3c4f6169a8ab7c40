"""`tellonce dead-letter …`: records that a group could not decide."""

from __future__ import annotations

import getpass
import os
from typing import Annotated

import typer

from consumers.runtime import dead_letters
from consumers.runtime.dead_letters import DeadLetter
from deploy.cli import session
from deploy.cli.options import Json, Limit, examples
from deploy.cli.output import emit, say, show, table

app = typer.Typer(help="Records that a group could not decide: why, and what to do with them.")

Numbers = Annotated[
    list[int], typer.Argument(metavar="NUMBER", help="As `list` shows them.", show_default=False)
]


@app.command(
    "list",
    epilog=examples("tellonce dead-letter list", "tellonce dead-letter list --reason unknown_type --json"),
)
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
    group: Annotated[str | None, typer.Option(help="Of this group.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    reason: Annotated[str | None, typer.Option(help="With this reason.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """The newest first."""
    state = None if all_ else "open"
    with session.reader() as conn:
        found = dead_letters.listed(conn, state=state, group=group, tenant=tenant, reason=reason, limit=limit)
    if json:
        emit(found)
        return
    show(
        table(
            ("number", "group", "tenant", "event type", "reason", "state", "since", "what is wrong"),
            (
                (
                    str(each.dead_letter_id),
                    each.group_name,
                    each.tenant_id,
                    each.event_type,
                    each.reason,
                    each.state,
                    each.created_at,
                    each.error,
                )
                for each in found
            ),
        )
    )


@app.command("show", epilog=examples("tellonce dead-letter show 7", "tellonce dead-letter show 7 --json"))
def show_(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="As `list` shows it.", show_default=False)],
    json: Json = False,
) -> None:
    """One dead letter whole: where it lay, its headers, its body."""
    with session.reader() as conn:
        found = dead_letters.shown(conn, number)
    if json:
        emit(found)
    else:
        show(table(("dead letter", str(number)), _facts(found)))


@app.command(epilog=examples("tellonce dead-letter retry 7 8"))
def retry(numbers: Numbers) -> None:
    """Send these again, all or none: each is decided as if it had come late."""
    with session.owner() as conn:
        sent = dead_letters.retry(conn, numbers, by=_me())
    say(f"{sent} sent again; `tellonce why` shows what becomes of them")


@app.command(epilog=examples("tellonce dead-letter discard 7 --note 'a test of the partner, see TICKET-12'"))
def discard(
    numbers: Numbers,
    note: Annotated[str, typer.Option(help="Why, for whoever asks later.", show_default=False)],
) -> None:
    """Put these away for good. Nothing is deleted; the decision stays."""
    with session.owner() as conn:
        closed = dead_letters.discard(conn, numbers, by=_me(), note=note)
    say(f"{closed} discarded")


def _me() -> str:
    """Who closes it, for whoever asks later; a container's user may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _facts(found: DeadLetter) -> list[tuple[object, object]]:
    place = f"{found.topic}[{found.partition}] at {found.offset}"
    closed = f"{found.closed_by}: {found.note or ''}" if found.closed_by else None
    return [
        ("group", found.group_name),
        ("place", place),
        ("tenant", found.tenant_id),
        ("event", found.event_id),
        ("event type", found.event_type),
        ("reason", found.reason),
        ("what is wrong", found.error),
        ("state", found.state),
        ("since", found.created_at),
        ("closed", found.closed_at),
        ("closed by", closed),
        ("key", _text(found.record_key)),
        *((f"header {name}", value) for name, value in found.headers or ()),
        ("body", _text(found.body)),
    ]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
