"""Fires due nudges: one bounded transaction at a time, safe for any number of clocks at once.

    lock what is due ──► its past is complete? ── yes ──► pending, and its timer record in the outbox
                                               └─ no ───► waits: looked at again later, never first in line

Locked in one statement and judged in the next, whose snapshot is younger than the locks: what supersession
committed before we had the lock is seen. An event that commits later is seen at the delivery's claim, which
asks the same question again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from opentelemetry.trace import SpanKind, Tracer
from psycopg import Connection

from connectors import failpoints, tracing
from connectors.failpoints import Failpoint
from connectors.postgres import clock, sql
from connectors.tracing import Attribute, Work
from producers.clock.probe import Subject, incomplete
from producers.clock.waking import Outlook
from schemas.platform_events import NUDGE_DUE, nudge_due, timers_topic

_queries = sql.load("producers.clock", "timers.sql")

BATCH: Final = 1_000
"""Nudges per transaction at most: a few tens of milliseconds, for which supersession may wait for a lead."""
RETRIES: Final = 250
"""Of these, at most so many that waited: a great many waiting ones do not slow what is ready."""
SHARE: Final = 250
"""Of one tenant in one transaction: with a backlog of one, others are at most a few transactions away."""
SHORTEST_WAIT: Final = timedelta(milliseconds=200)
"""Most wait for an event that is under way, which takes capture and its group some tens of milliseconds."""
LONGEST_WAIT: Final = timedelta(seconds=15)
"""How late a nudge can be after what held it back is mended; 100,000 of them cost 7,000 probes a second."""


class ClockChangedError(RuntimeError):
    """Rows that this transaction has locked did not change as told: a defect, nothing was fired."""


class Due(NamedTuple):
    """A nudge that is due, locked by this transaction; until its end the row stays at its address."""

    address: str
    nudge_id: str
    tenant_id: str
    product: str
    subject_id: str
    cause_id: str
    due_at: datetime

    @property
    def subject(self) -> Subject:
        return Subject(self.tenant_id, self.product, self.subject_id)


class Waiting(NamedTuple):
    """Nudges that are due while an event of their subject is undecided; `since` and `real` are real time."""

    nudges: int
    since: datetime | None
    real: datetime

    @property
    def longest(self) -> timedelta:
        return timedelta() if self.since is None else self.real - self.since


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction did. `full` says that there may be more to do at once."""

    fired: Counter[str] = field(default_factory=Counter)
    """By product."""
    held_back: Counter[str] = field(default_factory=Counter)
    """By product; those that waited before and wait again are among them."""
    put_back: int = 0
    latest_s: float = 0.0
    """How late the latest of them was, in seconds of the Clock."""
    full: bool = False
    last_tenant: str = ""
    """Whom the next transaction serves last."""

    @property
    def idle(self) -> bool:
        """Whether nothing was found that could be locked."""
        return not (self.fired or self.held_back or self.put_back)


def fire(conn: Connection[Any], after: str = "") -> Fired:
    """Fire at most `BATCH` due nudges in one transaction, tenants after `after` first."""
    began, tracer = time.monotonic(), tracing.tracer()
    with conn.transaction():
        conn.execute(_queries["no_scans"])
        reading, real = clock.read_at(conn)
        now = reading.now(real)
        times = {"now": now, "real": real, "after": after, "share": SHARE}
        retried = _lock(conn, "lock_waiting", times | {"limit": RETRIES})
        due = _lock(conn, "lock_due", times | {"limit": BATCH - len(retried)})
        early = [nudge for nudge in retried if nudge.due_at > now]
        found = [*(nudge for nudge in retried if nudge.due_at <= now), *due]
        waits = incomplete(conn, [nudge.subject for nudge in found])
        ready = [nudge for nudge in found if nudge.subject not in waits]
        held_back = [nudge for nudge in found if nudge.subject in waits]
        _fire(conn, ready, now)
        _let_wait(conn, held_back, real)
        _change(conn, "put_back", early, {})
        traces = [] if tracer is None else _traces(conn, ready)
        if ready:
            failpoints.reach(Failpoint.CLOCK_MARKED)
    if ready:
        failpoints.reach(Failpoint.CLOCK_FIRED)
    if tracer is not None:
        _tell(tracer, zip(ready, traces, strict=True), time.monotonic() - began)
    return Fired(
        fired=Counter(nudge.product for nudge in ready),
        held_back=Counter(nudge.product for nudge in held_back),
        put_back=len(early),
        latest_s=max(((now - nudge.due_at).total_seconds() for nudge in ready), default=0.0),
        full=_is_full(due, BATCH - len(retried)) or _is_full(retried, RETRIES),
        last_tenant=due[-1].tenant_id if due else after,
    )


def outlook(conn: Connection[Any], *, idle: bool) -> Outlook:
    """What comes next; `idle` when the transaction before found nothing."""
    reading, real = clock.read_at(conn)
    row = conn.execute(_queries["outlook"]).fetchone()
    due_at, retry_at = row or (None, None)
    return Outlook(reading, real, due_at, retry_at, idle)


def waiting(conn: Connection[Any], most: int) -> Waiting:
    """How many nudges of running tenants wait for their past, counted up to `most`."""
    row = conn.execute(_queries["waiting"], {"most": most}).fetchone()
    assert row is not None  # an aggregate
    return Waiting(*row)


def listen(conn: Connection[Any]) -> None:
    """From now on the connection hears what may wake the clock."""
    conn.execute(_queries["listen"])


def _lock(conn: Connection[Any], statement: str, values: Mapping[str, object]) -> list[Due]:
    return [Due(*row) for row in conn.execute(_queries[statement], values)]


def _is_full(locked: Sequence[Due], limit: int) -> bool:
    """Whether a limit cut this short: the transaction's, or the share of some tenant."""
    shares = Counter(nudge.tenant_id for nudge in locked)
    return len(locked) >= limit or any(count >= SHARE for count in shares.values())


def _fire(conn: Connection[Any], ready: Sequence[Due], now: datetime) -> None:
    if not ready:
        return
    _change(conn, "fire", ready, {"now": now})
    records = [nudge_due(nudge.cause_id, nudge.tenant_id, nudge.nudge_id) for nudge in ready]
    conn.execute(
        _queries["announce"],
        {
            "event_type": NUDGE_DUE,
            "event_ids": [record.event_id for record in records],
            "payloads": [record.payload for record in records],
            "tenant_ids": [nudge.tenant_id for nudge in ready],
            "products": [nudge.product for nudge in ready],
            "subject_ids": [nudge.subject_id for nudge in ready],
            "topics": [timers_topic(nudge.product) for nudge in ready],
            "due": [nudge.due_at for nudge in ready],
            "cause_ids": [nudge.cause_id for nudge in ready],
        },
    )


def _traces(conn: Connection[Any], ready: Sequence[Due]) -> list[str | None]:
    """The `traceparent` of each one's cause."""
    causes = {
        "cause_ids": [nudge.cause_id for nudge in ready],
        "tenant_ids": [nudge.tenant_id for nudge in ready],
    }
    return [traceparent for (traceparent,) in conn.execute(_queries["traces"], causes)]


def _tell(tracer: Tracer, fired: Iterable[tuple[Due, str | None]], seconds: float) -> None:
    """A span for each nudge whose firing has been committed."""
    for nudge, traceparent in fired:
        tracing.told(
            tracer,
            f"{Work.FIRE} {nudge.product}",
            traceparent,
            SpanKind.PRODUCER,
            {
                Attribute.TENANT: nudge.tenant_id,
                Attribute.EVENT_ID: nudge.cause_id,
                Attribute.NUDGE_ID: nudge.nudge_id,
            },
            seconds,
        )


def _let_wait(conn: Connection[Any], held_back: Sequence[Due], real: datetime) -> None:
    bounds = {"real": real, "shortest": SHORTEST_WAIT, "longest": LONGEST_WAIT}
    _change(conn, "let_wait", held_back, bounds)


def _change(
    conn: Connection[Any], statement: str, nudges: Sequence[Due], values: Mapping[str, object]
) -> None:
    if not nudges:
        return
    rows: dict[str, object] = {"addresses": [nudge.address for nudge in nudges]}
    changed = conn.execute(_queries[statement], rows | dict(values)).rowcount
    if changed != len(nudges):
        raise ClockChangedError(f"{statement}: {changed} of {len(nudges)} locked nudges changed")
