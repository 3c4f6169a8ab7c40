"""Imports a log: resumable, repeatable, at a bounded rate, in time order.

What the database keeps of an import (`platform.import`) advances in the same transaction as its rows, so
a killed import goes on where it was, and one that is done has nothing left to do. A log that grew since
is imported from where it ended; one that changed is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opentelemetry.trace import SpanKind
from psycopg import Connection

from connectors import tracing
from connectors.postgres import sql
from producers.importer.ids import ImportIds
from producers.importer.pace import Pace
from producers.importer.plan import Contract, PlannedEvent, digest, plan
from producers.importer.spec import ImportSpec

_queries = sql.load("producers.importer", "queries.sql")

BATCH = 2_000
"""Rows of one transaction: large enough for the rate, small enough to lose little and to lock briefly."""

Progress = Callable[[int, int], None]
"""Told (rows done, rows in all) after every batch."""


class ImportRefusedError(Exception):
    """The import cannot begin or go on; the message says why and what to do. Nothing of this batch was
    written.
    """


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did. `already` rows were there from an earlier start."""

    tenant: str
    import_id: str
    rows: int
    imported: int
    already: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _State:
    product: str
    first_started_at: datetime
    rows_done: int
    rows_total: int | None
    sorted_from: int
    digest: str | None


def import_log(
    conn: Connection[Any],
    spec: ImportSpec,
    contracts: Mapping[str, Contract],
    *,
    progress: Progress = lambda done, total: None,
    pace: Pace | None = None,
    batch: int = BATCH,
) -> ImportResult:
    """Import the log that `spec` describes; `contracts` are the product's, by event type.

    `conn` is an owner's, idle; every batch is a transaction of its own. Raises `SpecError` and
    `InvalidLogError` before anything is written, `ImportRefusedError` for an unknown tenant or product,
    for a payload over the installation's limit, for a log that changed under its id and when another
    process is at the same import.
    """
    started = time.monotonic()
    pace = pace or Pace(None)
    events = plan(spec, contracts)
    run = _Import(conn, spec, events)
    state = run.begin()
    already = state.rows_done
    progress(already, len(events))
    size = pace.batch(batch)
    while (state := run.state()).rows_done < len(events):
        if state.rows_done == (state.rows_total or 0):
            run.open_part(state)
            continue
        for low in range(state.rows_done, state.rows_total or 0, size):
            high = min(low + size, state.rows_total or 0)
            pace.take(high - low)
            run.insert(state, low, high)
            progress(high, len(events))
    return ImportResult(
        tenant=spec.tenant,
        import_id=spec.name,
        rows=len(events),
        imported=len(events) - already,
        already=already,
        seconds=time.monotonic() - started,
    )


class _Import:
    """One import's statements. Rows are numbered in the order of insertion: part by part, each sorted by
    time.
    """

    def __init__(self, conn: Connection[Any], spec: ImportSpec, events: Sequence[PlannedEvent]) -> None:
        self._conn = conn
        self._spec = spec
        self._events = events
        self._key = {"tenant": spec.tenant, "import_id": spec.name}
        self._part: tuple[int, int] | None = None
        self._sorted: list[PlannedEvent] = []

    def begin(self) -> _State:
        """Find or found the import; refuse what is not this log's."""
        product = {"product": self._spec.product}
        with self._conn.transaction():
            row = self._conn.execute(_queries["known"], self._key | product).fetchone()
            tenant_known, product_known, limit = row or (False, False, 0)
            if not tenant_known:
                raise ImportRefusedError(f"tenant {self._spec.tenant!r} is unknown; create it first")
            if not product_known:
                raise ImportRefusedError(
                    f"product {self._spec.product!r} is not registered; run `tellonce migrate`"
                )
            self._refuse_oversized(limit)
            self._conn.execute(_queries["begin"], self._key | product)
        state = self.state()
        total = state.rows_total or 0
        same = state.product == self._spec.product and total <= len(self._events)
        if not same or (total and digest(self._events[:total]) != state.digest):
            raise ImportRefusedError(
                f"import {self._spec.name!r} of tenant {self._spec.tenant!r} was begun with other rows: "
                "a log may grow at its end, not change; give this one an --id of its own"
            )
        return state

    def _refuse_oversized(self, limit: int) -> None:
        for event in self._events:
            if len(event.body) > limit:
                raise ImportRefusedError(
                    f"{event.event_type} of {event.subject} at {event.occurred_at.isoformat()} has a payload of "
                    f"{len(event.body)} bytes, this installation admits {limit}: import fewer of its fields"
                )

    def state(self) -> _State:
        with self._conn.transaction():
            row = self._conn.execute(_queries["state"], self._key).fetchone()
        if row is None:
            raise ImportRefusedError(f"import {self._spec.name!r} is gone; its record was deleted meanwhile")
        return _State(*row)

    def open_part(self, state: _State) -> None:
        """What the log holds beyond what is done becomes the part under way."""
        total = len(self._events)
        with self._conn.transaction():
            self._change(
                "open_part", rows_done=state.rows_done, rows_total=total, digest=digest(self._events)
            )

    def insert(self, state: _State, low: int, high: int) -> None:
        """Rows `low` to `high` and the progress over them, in one transaction."""
        ids = ImportIds(self._spec.tenant, self._spec.name, state.first_started_at)
        rows = self._ordered(state)[low - state.sorted_from : high - state.sorted_from]
        # The transaction is inside: a batch that fails at its commit is a failed span.
        with _appending(self._spec.tenant, high - low) as traceparent, self._conn.transaction():
            self._change("advance", **{"from": low, "to": high, "rows_total": state.rows_total})
            self._conn.execute(
                _queries["insert"],
                {
                    "tenant": self._spec.tenant,
                    "product": self._spec.product,
                    "event_ids": [ids[number] for number in range(low, high)],
                    "subjects": [row.subject for row in rows],
                    "event_types": [row.event_type for row in rows],
                    "payloads": [row.body for row in rows],
                    "times": [row.occurred_at for row in rows],
                    "traceparent": traceparent,
                },
            )

    def _ordered(self, state: _State) -> list[PlannedEvent]:
        """The part under way by time; rows of one time stay in the log's order."""
        part = (state.sorted_from, state.rows_total or 0)
        if self._part != part:
            self._part = part
            self._sorted = sorted(self._events[slice(*part)], key=lambda event: event.occurred_at)
        return self._sorted

    def _change(self, statement: str, **values: object) -> None:
        if self._conn.execute(_queries[statement], self._key | values).rowcount != 1:
            raise ImportRefusedError(f"another process is at import {self._spec.name!r}; let it end")


@contextmanager
def _appending(tenant: str, events: int) -> Iterator[str | None]:
    """The context that a batch's rows carry: its own span's, or where none is recorded the one it runs in, if any."""
    tracer = tracing.tracer()
    if tracer is None:
        yield tracing.current_traceparent()
        return
    said: tracing.Said = {tracing.Attribute.TENANT: tenant, tracing.Attribute.EVENTS: events}
    with tracing.around(tracer, tracing.Work.APPEND, SpanKind.PRODUCER, said) as span:
        yield tracing.traceparent_of(span)
