"""The checks of decisions: what the database holds, against what serial execution of the topic says it must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES, Sampler
from deploy.demo.scope import Scope
from schemas.states import NOBODY, DeadReason, DecisionOutcome, NudgeReason, NudgeState

FIRED = {
    (NudgeState.PENDING.value, None),
    (NudgeState.SENT.value, None),
    (NudgeState.CANCELLED.value, NudgeReason.NOBODY.value),
    (NudgeState.CANCELLED.value, NudgeReason.SUPPRESSED.value),
}
"""What becomes of a nudge that fell due while it stood for its lead; a later step finds it no longer live, unless it
is pending still."""


@dataclass(frozen=True, slots=True)
class Check:
    """A promise, whether it held, and what that was told from."""

    promise: str
    held: bool
    found: str


def undecided(conn: Connection[Any], scope: Scope) -> int:
    """How many decisions on records of the scope are still owed."""
    return _count(conn, "undecided", scope)


def unsent(conn: Connection[Any], scope: Scope) -> int:
    """How many deliveries have neither ended nor been accepted."""
    return _count(conn, "unsent", scope)


def moving(conn: Connection[Any], scope: Scope) -> int:
    """How many of these wait for nothing but their turn."""
    return _count(conn, "moving", scope)


def live(conn: Connection[Any], scope: Scope) -> int:
    """How many nudges may still become a message."""
    return _count(conn, "live", scope)


def check(conn: Connection[Any], scope: Scope, replayed: Replayed, sampler: Sampler) -> list[Check]:
    """Every check, once nothing is undecided. `conn` may read all of the tenants' rows."""
    nudges = _rows(conn, "nudges", scope)
    fired = {row[1] for row in nudges if (row[5], row[8]) in FIRED}
    gone = {row[1] for row in nudges if row[1] in fired and row[5] != NudgeState.PENDING}
    return [
        _one_live(conn, scope, sampler),
        _one_decision_each(conn, scope, replayed),
        _same_decisions(conn, scope, replayed, gone),
        _same_journeys(conn, scope, replayed),
        _same_nudges(nudges, replayed, fired),
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


def _same_decisions(conn: Connection[Any], scope: Scope, replayed: Replayed, gone: set[str]) -> Check:
    """Serial execution knows neither clock nor people: what had been told when the next step came needed no
    cancelling, and whether an immediate step found somebody depends on the directory.
    """
    want = [
        (
            d.event.tenant_id,
            d.event.event_id,
            d.outcome.value,
            None if d.reason == NOBODY else d.reason,
            d.nudge_id,
            None if d.cancelled_nudge_id in gone else d.cancelled_nudge_id,
        )
        for d in replayed.superseded.decisions
    ]
    dead = DecisionOutcome.DEAD_LETTER.value
    found = [
        (*row[:3], None if row[3] == NOBODY else row[3], *row[4:])
        for row in _rows(conn, "decisions", scope)
        if row[2] != dead
    ]
    return _same("each decision is the one of serial execution in the topic's order", want, found)


def _same_journeys(conn: Connection[Any], scope: Scope, replayed: Replayed) -> Check:
    want = [
        (key.tenant_id, key.subject_id, lead.reached, lead.epoch_began_at, lead.ended_at)
        for key, lead in replayed.superseded.leads.items()
    ]
    found = [
        (t, s, tuple(reached), began, ended) for t, s, reached, began, ended in _rows(conn, "journeys", scope)
    ]
    return _same("each lead stands where serial execution leaves it", want, found)


def _same_nudges(nudges: Iterable[tuple[Any, ...]], replayed: Replayed, fired: set[str]) -> Check:
    """One that fired was live when it did: what it had become by then is the deliveries' story."""
    want = [
        (
            nudge.lead.tenant_id,
            nudge.nudge_id,
            nudge.lead.subject_id,
            nudge.step,
            nudge.due_at,
            *(
                ("fired",)
                if nudge.nudge_id in fired
                else (
                    nudge.state.value,
                    nudge.superseded_by,
                    nudge.cancelled_by,
                    nudge.reason and nudge.reason.value,
                )
            ),
        )
        for nudge in replayed.superseded.armed.values()
    ]
    found = [(*row[:5], "fired") if row[1] in fired else row for row in nudges]
    return _same(f"every nudge and what became of it, too ({len(fired):,} fell due)", want, found)


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


def _count(conn: Connection[Any], query: str, scope: Scope) -> int:
    return int(_rows(conn, query, scope)[0][0])
