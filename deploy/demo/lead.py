"""One lead's story: each event and its decision, then each message and what its provider answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from consumers.supersession.decide import LeadKey
from deploy.demo.messages import Attempt, Delivery, Messages
from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES
from deploy.demo.scope import Scope

MOST_EVENTS = 9
"""A longer story explains no more."""


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one event of a lead."""

    event_type: str
    occurred_at: datetime
    outcome: str
    reason: str | None
    armed: str | None
    state: str | None
    cancelled: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and the calls that it took."""

    delivery: Delivery
    attempts: Sequence[Attempt]


@dataclass(frozen=True, slots=True)
class Story:
    """A lead's."""

    lead: LeadKey
    steps: Sequence[Step]
    said: Sequence[Said]


def gather(conn: Connection[Any], scope: Scope, replayed: Replayed, messages: Messages) -> Story:
    """The story of the lead that went through most kinds of things."""
    said: defaultdict[LeadKey, list[Said]] = defaultdict(list)
    for delivery in messages.deliveries:
        attempts = messages.attempts.get(delivery.delivery_id, ())
        said[LeadKey(delivery.tenant_id, delivery.subject_id)].append(Said(delivery, attempts))
    lead = _most_eventful(replayed, said)
    return Story(lead, _steps(conn, scope, replayed, lead), said[lead])


def _most_eventful(replayed: Replayed, said: defaultdict[LeadKey, list[Said]]) -> LeadKey:
    kinds: defaultdict[LeadKey, set[tuple[str, str]]] = defaultdict(set)
    events: defaultdict[LeadKey, int] = defaultdict(int)
    for each in replayed.superseded.decisions:
        key = LeadKey(each.event.tenant_id, each.event.subject_id)
        kinds[key].add((each.outcome.value, each.reason or ""))
        events[key] += 1
    for key, messages in said.items():
        for message in messages:
            kinds[key].add((message.delivery.state, message.delivery.reason or ""))
            kinds[key].update(("attempt", attempt.outcome) for attempt in message.attempts)
    short = [key for key in kinds if events[key] <= MOST_EVENTS] or list(kinds)
    return max(short, key=lambda key: (len(kinds[key]), -events[key], key))


def _steps(conn: Connection[Any], scope: Scope, replayed: Replayed, lead: LeadKey) -> list[Step]:
    parameters = {**scope.parameters, "tenant": lead.tenant_id, "subject": lead.subject_id}
    found = {row[0]: Step(*row[1:]) for row in conn.execute(QUERIES["why"], parameters)}
    return [
        found[event.event_id]
        for event in replayed.events
        if (event.tenant_id, event.subject_id) == lead and event.event_id in found
    ]


def show(console: Console, story: Story) -> None:
    """Print it."""
    console.print(
        f"\n[bold]Why[/bold]  lead {story.lead.subject_id} of {story.lead.tenant_id}, in the order of the log; "
        "then what was said, to the provider's answer",
        highlight=False,
    )
    console.print(_events(story.steps))
    console.print(_messages(story.said))


def _events(steps: Sequence[Step]) -> Table:
    table = _table("happened", "event", "decision", "arms (now)", "cancels")
    for step in steps:
        table.add_row(
            f"{step.occurred_at:%H:%M:%S}",
            _short(step.event_type),
            step.outcome + (f": {step.reason}" if step.reason else ""),
            f"{_short(step.armed)} ({step.state})" if step.armed else "",
            _short(step.cancelled or ""),
        )
    return table


def _messages(said: Sequence[Said]) -> Table:
    table = _table("message", "to", "became", "calls and answers")
    for each in said:
        delivery = each.delivery
        became = delivery.state + (f": {delivery.reason}" if delivery.reason else "")
        table.add_row(
            _short(delivery.kind),
            f"{delivery.role}, {delivery.channel}",
            became + (", retracted" if delivery.is_retracted else ""),
            "; ".join(map(_answer, each.attempts)),
        )
    return table


def _answer(attempt: Attempt) -> str:
    status = "" if attempt.status is None else f" {attempt.status}"
    reference = attempt.provider_ref or ""
    shown = f" {reference[:12]}…" if len(reference) > 12 else f" {reference}".rstrip()
    return f"{attempt.outcome}{status}{shown}"


def _table(*columns: str) -> Table:
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # a name cut short is no name
    return table


def _short(name: str) -> str:
    """Without the product: all here are of one."""
    return name.partition(".")[2]
