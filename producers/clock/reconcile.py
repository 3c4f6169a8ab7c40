"""The reconciler: finds what capture lost, and sends it again.

A round notes which rows lack a decision and where the WAL stands, waits until capture and the groups have
passed that point, and looks again. What still lacks its decision then can only have been lost. Waiting is
bounded: no answer is an alarm of its own and never a verdict.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from connectors.debezium.config import SLOT
from connectors.kafka.offsets import TopicOffsets
from connectors.logging import about, get_logger
from producers.clock.books import Books
from producers.clock.decide import (
    MAX_RESENDS,
    Behind,
    Candidate,
    Round,
    Sweep,
    Unanswered,
    Verdict,
    capture_answer,
    groups_behind,
    judge,
    slot_recreated,
    sweep_due,
    sweep_from,
)
from producers.clock.signals import Action, ClockMetrics

_log = get_logger(__name__)
_T = TypeVar("_T")

LOCK = "reconcile"
LOGGED_ROWS = 20
"""Lost rows named in the log per round; the rest is counted."""


@dataclass(frozen=True, slots=True)
class ReconcilerOptions:
    """Limits of a round, each with its reason."""

    slot: str = SLOT
    answer_within_s: float = 60.0
    """Capture confirms within seconds; a group that lags for longer than this is worth an alarm by itself."""
    poll_s: float = 0.2
    """How often answers are looked for: small against the connector's flush interval of a second."""
    rows: int = 5_000
    """Candidates of one group and round: bounds memory and the size of a resend; the rest is the next
    round's.
    """
    max_resends: int = MAX_RESENDS


TopicEnds = Callable[[Collection[str]], Mapping[str, TopicOffsets]]
"""Where those topics end now that exist; raises when the broker does not answer."""


class _StoppedError(Exception):
    """Asked to stop while waiting for an answer."""


class Reconciler:
    """Rounds over one database and its topics. Not for several threads; of several processes one works."""

    def __init__(
        self,
        books: Books,
        topic_ends: TopicEnds,
        metrics: ClockMetrics,
        *,
        options: ReconcilerOptions | None = None,
        stop: threading.Event | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._books = books
        self._topic_ends = topic_ends
        self._metrics = metrics
        self._options = options or ReconcilerOptions()
        self._stop = stop or threading.Event()
        self._monotonic = monotonic

    def round(self, sweep: Sweep | None = None) -> Round | None:
        """One round; None when another clock is at it, or when asked to stop before there was a verdict.

        Without a `sweep` it is the widest one that is due. Takes up to `answer_within_s`. Weather (a lost
        connection, an absent broker) raises; nothing is half done then, and the next round starts afresh.
        """
        with self._books.lock(LOCK) as mine:
            if not mine:
                return None
            state = self._books.state()
            slot = self._books.slot(self._options.slot)
            changed = slot_recreated(state.slot_txns, slot)
            if changed:
                _log.warning(Action.SLOT_CHANGED, slot=self._options.slot, exists=slot is not None)
            real = self._books.note().at
            sweep = sweep or sweep_due(state, real, slot_changed=changed)
            try:
                done = self._round(sweep, real)
            except _StoppedError:
                return None
            self._books.save(
                done,
                slot_txns=slot.decoded_txns if slot else state.slot_txns,
                owes_full=changed or sweep is Sweep.FULL,
            )
            self._tell(done)
            return done

    def _round(self, sweep: Sweep, real: datetime) -> Round:
        deadline = self._monotonic() + self._options.answer_within_s
        owed = self._books.owed_topics()
        candidates = self._books.undecided(owed, sweep_from(sweep, real), self._options.rows)
        noted = self._books.note()
        per_group = [sum(row.group == group for row in candidates) for group in owed]
        seen = Round(
            sweep, noted.at, len(candidates), truncated=any(n >= self._options.rows for n in per_group)
        )

        def capture_lacks() -> Unanswered | None:
            # With nothing to wait for, the slot has only to be there.
            slot = self._books.slot(self._options.slot)
            return capture_answer(slot, noted.lsn if candidates else 0)

        if lacking := self._await(capture_lacks, deadline):
            return replace(seen, unanswered=frozenset({lacking}))
        if not candidates:
            return seen
        ends = self._topic_ends({row.topic for row in candidates})
        asked = [row for row in candidates if row.topic in ends]
        behind = self._await(lambda: self._behind(asked, ends), deadline)
        silent = {lag.group for lag in behind}
        verdict = judge(
            self._books.still_undecided([row for row in asked if row.group not in silent]),
            self._options.max_resends,
        )
        causes = {Unanswered.NO_TOPIC} if len(asked) < len(candidates) else set()
        return replace(
            seen,
            lost=verdict.lost,
            resent=self._act(verdict, noted.at),
            gave_up=len(verdict.give_up),
            unanswered=frozenset(causes | ({Unanswered.GROUP} if behind else set())),
            behind=tuple(behind),
        )

    def _await(self, lacks: Callable[[], _T], deadline: float) -> _T:
        """Ask until nothing is lacking or the deadline has passed; what is lacking then, falsy when
        nothing.
        """
        while True:
            lacking = lacks()
            if not lacking or self._monotonic() >= deadline:
                return lacking
            if self._stop.wait(self._options.poll_s):
                raise _StoppedError

    def _behind(self, asked: Sequence[Candidate], ends: Mapping[str, TopicOffsets]) -> list[Behind]:
        owed: dict[str, set[str]] = {}
        for row in asked:
            owed.setdefault(row.group, set()).add(ends[row.topic].topic_id)
        by_partition = {
            (topic.topic_id, partition): end
            for topic in ends.values()
            for partition, end in topic.partitions.items()
        }
        progress = self._books.progress(list(owed), [topic.topic_id for topic in ends.values()])
        return groups_behind(owed, by_partition, progress)

    def _act(self, verdict: Verdict, real: datetime) -> int:
        """Send again and give up, each in its transaction; returns how many rows were sent."""
        for row in verdict.resend[:LOGGED_ROWS]:
            with about(tenant=row.tenant_id, event_id=row.event_id):
                _log.error(Action.LOST, group=row.group, topic=row.topic, resends=row.resends)
        for row in verdict.give_up[:LOGGED_ROWS]:
            with about(tenant=row.tenant_id, event_id=row.event_id):
                _log.error(Action.GAVE_UP, group=row.group, topic=row.topic, resends=row.resends)
        for row in (*verdict.resend, *verdict.give_up):
            self._metrics.lost.labels(row.group).inc()
        resent = self._books.resend(verdict.resend, real)
        self._metrics.resent.inc(resent)
        self._books.give_up(verdict.give_up)
        for row in verdict.give_up:
            self._metrics.gave_up.labels(row.group).inc()
        self._books.forget_healed()
        return resent

    def _tell(self, done: Round) -> None:
        self._metrics.rounds.labels(done.sweep, done.end).inc()
        self._metrics.undecided.set(done.undecided)
        if done.is_full_verdict:
            self._metrics.answered_at.set(done.noted_at.timestamp())
        for cause in sorted(done.unanswered):
            self._metrics.unanswered.labels(cause).inc()
            _log.error(
                Action.UNANSWERED,
                cause=cause,
                undecided=done.undecided,
                within_s=self._options.answer_within_s,
                behind={lag.group: lag.missing for lag in done.behind},
            )
        say = _log.warning if done.lost else _log.debug
        say(
            Action.ROUND,
            sweep=done.sweep,
            end=done.end,
            undecided=done.undecided,
            lost=done.lost,
            resent=done.resent,
            gave_up=done.gave_up,
        )
