"""What the demo tells at the end: figures, promises, one lead's story, and where to go on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from consumers.supersession.decide import LeadKey
from deploy.demo.checks import Check, Scope
from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES
from deploy.demo.storm import CALM_PREFIX, Blown

Outcome = tuple[str, str]

SHOWN: Sequence[tuple[str, Outcome]] = (
    ("nudges scheduled", ("scheduled", "")),
    ("told at once (immediate)", ("immediate", "")),
    ("immediate, and nobody to tell", ("immediate", "nobody")),
    ("dropped: not further than reached", ("dropped", "not_further")),
    ("dropped: the journey had ended", ("dropped", "ended")),
    ("dropped: before the restart", ("dropped", "before_restart")),
    ("journeys ended", ("ended", "")),
    ("journeys restarted", ("restarted", "")),
    ("lifecycle (cancel nothing)", ("lifecycle", "")),
    ("dead letters", ("dead_letter", "unknown_type")),
)


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
class Told:
    """Everything there is to show, taken before the stack goes."""

    scope: Scope
    blown: Blown
    records: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    superseded: Mapping[str, int]
    live: Mapping[str, int]
    calm_ms: tuple[float, float]
    """p50 and p99 from the domain's transaction to its decision, one event at a time."""
    checks: Sequence[Check]
    lead: LeadKey
    why: Sequence[Step]


def gather(
    conn: Connection[Any], scope: Scope, replayed: Replayed, blown: Blown, checks: Sequence[Check]
) -> Told:
    """Read what will be shown."""
    outcomes: defaultdict[str, dict[Outcome, int]] = defaultdict(dict)
    for tenant, outcome, reason, count in conn.execute(QUERIES["outcomes"], scope.parameters):
        outcomes[tenant][outcome, reason] = count
    nudges = conn.execute(QUERIES["nudges"], scope.parameters).fetchall()
    lead = _most_eventful(replayed)
    return Told(
        scope=scope,
        blown=blown,
        records=replayed.records,
        outcomes=outcomes,
        superseded=Counter(row[0] for row in nudges if row[8] == "superseded"),
        live=Counter(row[0] for row in nudges if row[5] in ("scheduled", "pending")),
        calm_ms=_latency(conn, scope, f"{CALM_PREFIX}%"),
        checks=checks,
        lead=lead,
        why=_why(conn, scope, replayed, lead),
    )


def _latency(conn: Connection[Any], scope: Scope, leads: str) -> tuple[float, float]:
    row = conn.execute(QUERIES["latency_ms"], {**scope.parameters, "leads": leads}).fetchone()
    assert row is not None  # an aggregate has one row
    return float(row[0][0]), float(row[0][1])


def _most_eventful(replayed: Replayed) -> LeadKey:
    """The lead with the most kinds of outcome, then the most events."""
    outcomes: defaultdict[LeadKey, list[Outcome]] = defaultdict(list)
    for each in replayed.superseded.decisions:
        key = LeadKey(each.event.tenant_id, each.event.subject_id)
        outcomes[key].append((each.outcome.value, each.reason or ""))
    return max(outcomes, key=lambda key: (len(set(outcomes[key])), -len(outcomes[key]), key))


def _why(conn: Connection[Any], scope: Scope, replayed: Replayed, lead: LeadKey) -> list[Step]:
    parameters = {**scope.parameters, "tenant": lead.tenant_id, "subject": lead.subject_id}
    found = {row[0]: Step(*row[1:]) for row in conn.execute(QUERIES["why"], parameters)}
    return [
        found[event.event_id]
        for event in replayed.events
        if (event.tenant_id, event.subject_id) == lead and event.event_id in found
    ]


def show(console: Console, told: Told, seconds: float) -> None:
    """Print it."""
    blown = told.blown
    events = sum(sum(each.values()) for each in told.outcomes.values())
    console.print()
    console.print(
        f"[bold]The storm[/bold]  {blown.requests:,} requests and late facts from concurrent threads: "
        f"{blown.retried:,} were retries of another, {blown.refused:,} the loan service refused. "
        f"{events:,} events were committed; {told.records:,} records came out of Kafka, "
        f"{told.records - events:,} of them repetitions.",
        highlight=False,
    )
    console.print(_figures(told))
    p50, p99 = told.calm_ms
    console.print(
        "From the domain's transaction to its decision, through WAL, Debezium and Kafka, in calm weather: "
        f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms.",
        highlight=False,
    )
    console.print("\n[bold]What was promised[/bold]")
    for each in told.checks:
        mark = "[green]✓[/green]" if each.held else "[red]✗[/red]"
        console.print(f" {mark} {each.promise} [dim]({each.found})[/dim]", highlight=False)
    console.print(
        f"\n[bold]Why[/bold]  lead {told.lead.subject_id} of {told.lead.tenant_id}, in the order of the log",
        highlight=False,
    )
    console.print(_story(told.why))
    _next(console, seconds)


def _figures(told: Told) -> Table:
    table = Table("", *told.scope.tenants, box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"

    def row(label: str, counts: Mapping[str, int]) -> None:
        table.add_row(label, *(f"{counts.get(tenant, 0):,}" for tenant in told.scope.tenants))

    row("events", {tenant: sum(each.values()) for tenant, each in told.outcomes.items()})
    for label, outcome in SHOWN:
        row(label, {tenant: each.get(outcome, 0) for tenant, each in told.outcomes.items()})
        if outcome == ("scheduled", ""):
            row("  of them superseded", told.superseded)
            row("  of them live now", told.live)
    return table


def _story(steps: Sequence[Step]) -> Table:
    table = Table("happened", "event", "decision", "arms (now)", "cancels", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # a name cut short is no name
    for step in steps:
        table.add_row(
            f"{step.occurred_at:%H:%M:%S}",
            _short(step.event_type),
            step.outcome + (f": {step.reason}" if step.reason else ""),
            f"{_short(step.armed)} ({step.state})" if step.armed else "",
            _short(step.cancelled or ""),
        )
    return table


def _short(name: str) -> str:
    """Without the product: all here are of one."""
    return name.partition(".")[2]


def _next(console: Console, seconds: float) -> None:
    console.print(
        f"\nTook {seconds:.0f} s. The stack of this demo is gone again; for one that stays:\n"
        "  make up                       PostgreSQL, Kafka and Connect, left running\n"
        "  .venv/bin/tellonce --help     status, nudges, why, run, connector, tenant, product …\n"
        "Open next: README.md, then schemas/products/loans/product.yaml (the journey) and\n"
        "consumers/supersession/decide.py (the rules).",
        highlight=False,
    )
