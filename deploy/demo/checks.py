"""The checks: what the database holds, against what serial execution of the topic says it must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES, Sampler
from schemas.states import NOBODY, DeadReason, DecisionOutcome, NudgeState


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tenants' events of which product."""

    tenants: Sequence[str]
    product: str

    @property
    def group(self) -> str:
        return f"supersession.{self.product}"

    @property
    def topic(self) -> str:
        return f"events.{self.product}"

    @property
    def parameters(self) -> dict[str, object]:
        """What the statements in `queries.sql` take."""
        return {
            "tenants": list(self.tenants),
            "product": self.product,
            "group": self.group,
            "topic": self.topic,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A promise, whether it held, and what that was told from."""

    promise: str
    held: bool
    found: str


def undecided(conn: Connection[Any], scope: Scope) -> int:
    """How many committed events of the scope have no decision yet."""
    return int(_rows(conn, "undecided", scope)[0][0])


def check(conn: Connection[Any], scope: Scope, replayed: Replayed, sampler: Sampler) -> list[Check]:
    """Every check, once nothing is undecided. `conn` may read all of the tenants' rows."""
    return [
        _one_live(conn, scope, sampler),
        _one_decision_each(conn, scope, replayed),
        _same_decisions(conn, scope, replayed),
        _same_journeys(conn, scope, replayed),
        _same_nudges(conn, scope, replayed),
        _poison_told(conn, scope, replayed),
    ]


def _one_live(conn: Connection[Any], scope: Scope, sampler: Sampler) -> Check:
    now = _rows(conn, "two_live", scope)
    return Check(
        "no lead ever had two live nudges",
        not sampler.found and not now and sampler.samples > 0,
        f"{sampler.samples:,} samples on the way and one at the end, {len(sampler.found) + len(now)} violations",
    )


def _one_decision_each(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    events = Counter(_rows(conn, "events", scope))
    decided = Counter((row[0], row[1]) for row in _rows(conn, "decisions", scope))
    return Check(
        "every event has exactly one decision",
        bool(events) and events == decided,
        f"{events.total():,} events, {decided.total():,} decisions, from {replayed.records:,} records",
    )


def _same_decisions(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    """Whether somebody could be told is the directory's word, and that is not in the topic."""
    want = [
        (
            d.event.tenant_id,
            d.event.event_id,
            d.outcome.value,
            _of_journey(d.reason),
            d.nudge_id,
            d.cancelled_nudge_id,
        )
        for d in replayed.superseded.decisions
    ]
    dead = DecisionOutcome.DEAD_LETTER.value
    found = [
        (tenant, event, outcome, _of_journey(reason), *nudges)
        for tenant, event, outcome, reason, *nudges in _rows(conn, "decisions", scope)
        if outcome != dead
    ]
    return _same("each decision is the one of serial execution in the topic's order", want, found)


def _of_journey(reason: str | None) -> str | None:
    return None if reason == NOBODY else reason


def _same_journeys(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    want = [
        (key.tenant_id, key.subject_id, lead.reached, lead.epoch_began_at, lead.ended_at)
        for key, lead in replayed.superseded.leads.items()
    ]
    found = [
        (t, s, tuple(reached), began, ended) for t, s, reached, began, ended in _rows(conn, "journeys", scope)
    ]
    return _same("each lead stands where serial execution leaves it", want, found)


def _same_nudges(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    want = [
        (
            nudge.lead.tenant_id,
            nudge.nudge_id,
            nudge.lead.subject_id,
            nudge.step,
            nudge.due_at,
            nudge.state.value,
            nudge.superseded_by,
            nudge.cancelled_by,
            nudge.reason and nudge.reason.value,
        )
        for nudge in replayed.superseded.armed.values()
    ]
    found = _rows(conn, "nudges", scope)
    live = sum(row[5] == NudgeState.SCHEDULED for row in found)
    return _same(f"every nudge and what became of it, too ({live:,} are live)", want, found)


def _poison_told(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    found = {(tenant, event): reason for tenant, event, reason in _rows(conn, "dead_letters", scope)}
    return Check(
        "what cannot be decided is a dead letter and stops nobody",
        found == replayed.dead and set(found.values()) == {DeadReason.UNKNOWN_TYPE},
        ", ".join(f"{count} × {reason}" for reason, count in Counter(found.values()).items()) or "none",
    )


def _same(promise: str, want: Iterable[Hashable], found: Iterable[Hashable]) -> Check:
    expected, actual = Counter(want), Counter(found)
    differing = (expected - actual).total() + (actual - expected).total()
    detail = f"{actual.total():,} compared, {differing} differ"
    if differing:
        example = next(iter((expected - actual) or (actual - expected)))
        detail += f"; such as {example}"
    return Check(promise, differing == 0 and expected.total() > 0, detail)


def _rows(conn: Connection[Any], query: str, scope: Scope) -> list[tuple[Any, ...]]:
    return conn.execute(QUERIES[query], scope.parameters).fetchall()
