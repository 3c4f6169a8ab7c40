"""What the demo tells at the end: figures, promises, one lead's story, and where to go on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from psycopg import Connection
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from connectors.kafka.topics import CHANNELS
from deploy.demo import lead
from deploy.demo.checks import Check
from deploy.demo.messages import Delivery, Messages
from deploy.demo.outside import ANSWERS_LOST, Outage
from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES
from deploy.demo.scope import Scope
from deploy.demo.storm import CALM_PREFIX, Blown
from deploy.demo.time import Time
from schemas.products.audience import Channel
from schemas.states import NOBODY

Outcome = tuple[str, str]

DECISIONS: Sequence[tuple[str, Outcome]] = (
    ("told at once (immediate steps)", ("immediate", "")),
    ("dropped: not further than reached", ("dropped", "not_further")),
    ("dropped: the journey had ended", ("dropped", "ended")),
    ("dropped: before the restart", ("dropped", "before_restart")),
    ("dropped: due, but superseded meanwhile", ("dropped", "superseded")),
    ("lifecycle (cancel nothing)", ("lifecycle", "")),
    ("dead letters", ("dead_letter", "unknown_type")),
)
NUDGES: Sequence[tuple[str, Outcome]] = (
    ("  superseded by a further step", ("cancelled", "superseded")),
    ("  cancelled: the journey ended", ("cancelled", "ended")),
    ("  cancelled: it began anew", ("cancelled", "restarted")),
    ("  due, and nobody to tell", ("cancelled", "nobody")),
    ("  due, and nobody to be told any more", ("cancelled", "suppressed")),
    ("  sent", ("sent", "")),
)


@dataclass(frozen=True, slots=True)
class Told:
    """Everything there is to show, taken before the stack goes."""

    scope: Scope
    blown: Blown
    outage: Outage
    events: int
    records: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    """By tenant: supersession's decisions."""
    nudges: Mapping[str, Mapping[Outcome, int]]
    """By tenant: states, with their reasons."""
    messages: Messages
    decided_ms: tuple[float, float]
    """p50 and p99 from the domain's transaction to its decision, in calm weather."""
    arrived_ms: tuple[float, float]
    """And from there to WhatsApp's endpoint, for what is told at once."""
    checks: Sequence[Check]
    lead: lead.Story


def gather(
    conn: Connection[Any],
    scope: Scope,
    replayed: Replayed,
    blown: Blown,
    outage: Outage,
    messages: Messages,
    checks: Sequence[Check],
    time: Time,
) -> Told:
    """Read what will be shown."""
    outcomes: defaultdict[str, Counter[Outcome]] = defaultdict(Counter)
    for tenant, outcome, reason, count in conn.execute(QUERIES["outcomes"], scope.parameters):
        outcomes[tenant][outcome, "" if reason == NOBODY else reason] += count
    nudges: defaultdict[str, Counter[Outcome]] = defaultdict(Counter)
    for row in conn.execute(QUERIES["nudges"], scope.parameters):
        nudges[row[0]][row[5], row[8] or ""] += 1
    return Told(
        scope=scope,
        blown=blown,
        outage=outage,
        events=len(replayed.events) + len(replayed.dead),
        records=replayed.records,
        outcomes=outcomes,
        nudges=nudges,
        messages=messages,
        decided_ms=_decided_ms(conn, scope, time),
        arrived_ms=_arrived_ms(messages),
        checks=checks,
        lead=lead.gather(conn, scope, replayed, messages),
    )


def _decided_ms(conn: Connection[Any], scope: Scope, time: Time) -> tuple[float, float]:
    decided = {
        (tenant, event): time.real(at)
        for tenant, event, at in conn.execute(QUERIES["decided_at"], scope.parameters)
    }
    return _p50_p99(
        (decided[tenant, event] - recorded_at).total_seconds() * 1000
        for tenant, event, subject, recorded_at in conn.execute(QUERIES["recorded_at"], scope.parameters)
        if subject.startswith(CALM_PREFIX)
    )


def _arrived_ms(messages: Messages) -> tuple[float, float]:
    return _p50_p99(
        (arrival.received_at - delivery.recorded_at).total_seconds() * 1000
        for arrival in messages.arrivals
        for delivery in (messages.by_id[arrival.delivery_id],)
        if arrival.channel == Channel.WHATSAPP
        and delivery.subject_id.startswith(CALM_PREFIX)
        and delivery.nudge_id is None
    )


def _p50_p99(took_ms: Iterable[float]) -> tuple[float, float]:
    cuts = quantiles(took_ms, n=100, method="inclusive")
    return cuts[49], cuts[98]


def show(console: Console, told: Told, seconds: float) -> None:
    """Print it."""

    def say(text: str) -> None:
        console.print(text, highlight=False)

    blown = told.blown
    say(
        f"\n[bold]The storm[/bold]  {blown.requests:,} requests and late facts from concurrent threads: "
        f"{blown.retried:,} were retries of another, {blown.refused:,} the loan service refused. "
        f"{told.events:,} events were committed; {told.records:,} records came out of Kafka, "
        f"{told.records - told.events:,} of them repetitions."
    )
    console.print(_decisions(told))
    say("[bold]What was said[/bold]  on each channel, and what kept the rest")
    console.print(_deliveries(told.messages.deliveries))
    say(f"[bold]The outage[/bold]  {_outage(told)}")
    say(
        "\n[bold]How fast[/bold]  in calm weather, from the domain's commit through WAL, Debezium and Kafka "
        f"to its decision: p50 {told.decided_ms[0]:,.0f} ms, p99 {told.decided_ms[1]:,.0f} ms; "
        f"to WhatsApp's endpoint: p50 {told.arrived_ms[0]:,.0f} ms, p99 {told.arrived_ms[1]:,.0f} ms."
    )
    say("\n[bold]What was promised[/bold]")
    for each in told.checks:
        mark = "[green]✓[/green]" if each.held else "[red]✗[/red]"
        say(f" {mark} {each.promise} [dim]({each.found})[/dim]")
    lead.show(console, told.lead)
    _next(console, seconds)


def _decisions(told: Told) -> Table:
    table = _figures(told.scope.tenants)

    def row(label: str, counts: Mapping[str, int]) -> None:
        if any(counts.values()):
            table.add_row(label, *(f"{counts.get(tenant, 0):,}" for tenant in told.scope.tenants))

    row("nudges scheduled", {tenant: sum(each.values()) for tenant, each in told.nudges.items()})
    for label, state in NUDGES:
        row(label, {tenant: each.get(state, 0) for tenant, each in told.nudges.items()})
    for label, outcome in DECISIONS:
        row(label, {tenant: each.get(outcome, 0) for tenant, each in told.outcomes.items()})
    return table


def _deliveries(deliveries: Sequence[Delivery]) -> Table:
    table = _figures(CHANNELS)
    ends = Counter(((each.state, each.reason or ""), each.channel) for each in deliveries)
    states = Counter((each.state, each.reason or "") for each in deliveries)
    for state, reason in sorted(states, key=lambda end: -states[end]):
        label = state + (f": {reason.replace('_', ' ')}" if reason else "")
        table.add_row(label, *(f"{ends[(state, reason), channel]:,}" for channel in CHANNELS))
    return table


def _figures(columns: Iterable[str]) -> Table:
    table = Table("", *columns, box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _outage(told: Told) -> str:
    messages = told.messages
    failed = {
        delivery_id
        for delivery_id, attempts in messages.attempts.items()
        if any(attempt.outcome in ("retry", "unknown") for attempt in attempts)
    }
    ended = Counter(messages.by_id[delivery_id].state for delivery_id in failed)
    repeats = sum(each.repeats for each in messages.arrivals)
    return (
        f"WhatsApp's endpoint lost the answers to {ANSWERS_LOST} messages and then answered 503, "
        f"{told.outage.seconds:.1f} s long. {told.outage.failed} calls failed before the breaker kept the rest back; "
        f"of {len(failed)} messages {ended['sent']} went out later, {ended['suppressed']} were no longer true by then; "
        f"{repeats} that the endpoint had already were recognised by their keys."
    )


def _next(console: Console, seconds: float) -> None:
    console.print(
        f"\nTook {seconds:.0f} s. The stack of this demo is gone again; for one that stays:\n"
        "  make up                              PostgreSQL, Kafka and Connect, left running\n"
        "  .venv/bin/python -m deploy.providers --accounts .local/accounts.toml\n"
        "                                       providers on this machine; the page at / shows what arrives\n"
        "  .venv/bin/tellonce --help            run, status, why, deliveries, nudges, clock, tenant …\n"
        "Open next: README.md (the first event), then schemas/products/loans/product.yaml (the journey),\n"
        "consumers/supersession/decide.py (one live nudge) and consumers/delivery/decide.py (is it still true?).",
        highlight=False,
    )
