"""`tellonce deliveries …`: each message to each person, what its provider answered, and what to do with it."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import typer
from rich.console import Group
from typer.core import TyperGroup

from consumers.delivery import operate
from deploy.cli import session
from deploy.cli.delivered import deliveries, look_up
from deploy.cli.messages import Attempt, Message, to_whom
from deploy.cli.options import Json, Limit, examples
from deploy.cli.output import emit, say, show, table
from schemas.products.audience import Channel
from schemas.states import DeliveryState


class ListsAlone(TyperGroup):
    """The group whose name alone, or with options, is its command `list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's, with `list` put where no command is named."""
        alone = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if alone else args)


app = typer.Typer(
    cls=ListsAlone,
    help="Each message to each person, and what its provider answered. Alone, it lists them.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.", show_default=False)]
Ids = Annotated[list[str], typer.Argument(metavar="ID", help="As `list` shows them.", show_default=False)]


@app.command(
    "list",
    epilog=examples(
        "tellonce deliveries --tenant acme --subject L-1",
        "tellonce deliveries list --state held --channel whatsapp --json | jq -r '.[].delivery_id'",
    ),
)
def list_(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant.")] = None,
    subject: Annotated[str | None, typer.Option(help="Of this subject.")] = None,
    state: Annotated[list[DeliveryState] | None, typer.Option(help="In this state; may come again.")] = None,
    channel: Annotated[Channel | None, typer.Option(help="On this channel.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of this kind.")] = None,
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """The latest first, by their causes."""
    with session.reader() as conn:
        found = deliveries(
            conn,
            tenant=tenant,
            subject=subject,
            states=[each.value for each in state] if state else None,
            channel=channel.value if channel else None,
            kind=kind,
            limit=limit,
        )
    if json:
        emit(found)
        return
    show(
        table(
            (
                "delivery",
                "tenant",
                "subject",
                "kind",
                "whom",
                "channel",
                "state",
                "reason",
                "attempts",
                "due",
            ),
            (
                (
                    each.delivery_id,
                    each.tenant_id,
                    each.subject_id,
                    each.kind,
                    to_whom(each.user_id, each.role),
                    each.channel,
                    each.state,
                    each.reason,
                    each.attempts,
                    each.due_at,
                )
                for each in found
            ),
        )
    )


@app.command(
    "show",
    epilog=examples(
        "tellonce deliveries show 0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f",
        "tellonce deliveries show 0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f --body --json",
    ),
)
def show_(
    delivery_id: Id,
    body: Annotated[bool, typer.Option("--body", help="With its address and what it says.")] = False,
    json: Json = False,
) -> None:
    """One delivery whole: its row, what its body is made of, each attempt with its answer.

    The address and what it says are personal data, and shown with --body only.
    """
    named = _named([delivery_id])[0]
    with session.reader() as conn:
        message, frozen = look_up(conn, named, with_body=body)
    if json:
        emit(
            {
                "delivery": message.delivery,
                "words": message.words,
                "body": frozen,
                "attempts": message.attempts,
            }
        )
        return
    show(
        Group(
            table(("delivery", named), _facts(message, frozen)),
            table(
                ("attempt", "began", "outcome", "status", "ms", "reference", "error"),
                map(_line, message.attempts),
            )
            if message.attempts
            else "no attempt yet",
        )
    )


@app.command(epilog=examples("tellonce deliveries retry 0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f"))
def retry(delivery_ids: Ids) -> None:
    """Let these go out again, all or none: those on hold.

    Where nobody knows whether it went out, somebody may get the message twice. What has become untrue meanwhile is
    not sent. Everything else is refused: what is queued goes by itself, and what has ended (sent, failed, suppressed,
    expired) stays as it ended.
    """
    named = _named(delivery_ids)
    with session.owner() as conn:
        queued = operate.retry(conn, named)
    say(f"{queued} queued again, due now; `tellonce deliveries show` says what becomes of them")


@app.command(epilog=examples("tellonce deliveries cancel 0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f"))
def cancel(delivery_ids: Ids) -> None:
    """Cancel these for good, all or none: those that are queued or on hold.

    What is being sent cannot be called back. A due nudge of which no message is left is cancelled with them.
    """
    named = _named(delivery_ids)
    with session.owner() as conn:
        cancelled = operate.cancel(conn, named)
    say(f"{cancelled} cancelled")


def _named(delivery_ids: list[str]) -> list[str]:
    """The ids as the database writes them; one that is none is a usage error."""
    named = []
    for text in delivery_ids:
        try:
            named.append(str(uuid.UUID(text)))
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is no delivery's id; `tellonce deliveries list` shows them", param_hint="ID"
            ) from None
    return named


def _facts(message: Message, frozen: dict[str, object] | None) -> list[tuple[object, object]]:
    each = message.delivery
    body: list[tuple[object, object]] = [("body", "not frozen yet")]
    if frozen is not None:
        content = frozen.get("content", frozen.get("shape"))
        body = [("body frozen", frozen["frozen_at"]), *flat("body", content)]
        body += [("address", frozen.get("address", "kept back; --body shows it"))]
    return [
        ("tenant", each.tenant_id),
        ("product", each.product),
        ("subject", each.subject_id),
        ("kind", each.kind),
        ("whom", to_whom(each.user_id, each.role)),
        ("channel", each.channel),
        ("account", each.account),
        ("state", each.state),
        ("what became of it", message.words),
        ("reason", each.reason),
        ("error", each.error),
        ("due", each.due_at),
        ("expires", each.expires_at),
        ("leased until", each.lease_until),
        ("attempts", each.attempts),
        ("first attempt", each.first_attempt_at),
        ("provider's reference", each.provider_ref),
        ("event", each.event_id),
        ("nudge", each.nudge_id),
        ("notification", each.notification_id),
        ("prepared", each.created_at),
        ("changed", each.updated_at),
        *body,
    ]


def flat(name: str, content: object) -> list[tuple[object, object]]:
    """A nested document as lines of path and value."""
    match content:
        case dict():
            return [line for key, value in content.items() for line in flat(f"{name}.{key}", value)]
        case list():
            return [line for place, value in enumerate(content) for line in flat(f"{name}.{place}", value)]
        case _:
            return [(name, content)]


def _line(each: Attempt) -> tuple[object, ...]:
    return (
        each.attempt,
        each.began_at,
        each.outcome,
        None if each.status is None else str(each.status),
        each.latency_ms,
        each.provider_ref,
        each.error,
    )
