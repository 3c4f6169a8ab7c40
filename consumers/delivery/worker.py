"""Records answers and claims what is next: one thread, one connection, one transaction a round.

It is woken by announcements, by answers and by the next due time; it never polls faster than any of them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

from connectors import failpoints, tracing
from connectors.failpoints import Failpoint
from connectors.logging import get_logger
from connectors.postgres import clock
from consumers.delivery import spans
from consumers.delivery.apart import Apart
from consumers.delivery.claim import Claimed, Claimer, Key
from consumers.delivery.decide import Verdict, is_cut_off
from consumers.delivery.desks import Desks
from consumers.delivery.metrics import DeliveryMetrics
from consumers.delivery.record import record_answers
from consumers.delivery.resolve import QUERIES, Moment
from consumers.delivery.sender import Answered, Job
from consumers.runtime.database import Database
from consumers.runtime.trials import FAILURES, Trials
from consumers.runtime.tx import Tx
from schemas.products.audience import Channel
from schemas.states import HoldReason

ROUND_MOST = 500
"""How many are claimed in one transaction: their locks are held for tens of milliseconds."""
LOOK_MOST_S = 5.0
"""How long it sleeps at most: what another process announced and did not live to claim is found within this."""
LOOK_LEAST_S = 0.01
GATHER_S = 0.02
"""An answer is recorded together with those that come right behind it, unless somebody waits for its seat."""

_log = get_logger(__name__)


@dataclass(slots=True)
class Mailbox:
    """What other threads tell the worker."""

    bell: threading.Condition = field(default_factory=threading.Condition)
    announced: deque[Key] = field(default_factory=deque)
    answered: deque[Answered] = field(default_factory=deque)

    def announce(self, keys: Sequence[Key]) -> None:
        """These are ready; from the runtime's loop."""
        with self.bell:
            self.announced.extend(keys)
            self.bell.notify()

    def answer(self, answered: Answered) -> None:
        """This came back; from the sender's loop."""
        with self.bell:
            self.answered.append(answered)
            self.bell.notify()

    def ring(self) -> None:
        """Look again, now."""
        with self.bell:
            self.bell.notify()


class Worker:
    """The claims and records of one channel in one process. `run` is its thread's; the mailbox is everybody's."""

    def __init__(
        self,
        claimer: Claimer,
        channel: str,
        database: Database,
        mailbox: Mailbox,
        submit: Callable[[Sequence[Job]], None],
        desks: Desks,
        metrics: DeliveryMetrics,
        stopping: Callable[[], bool],
    ) -> None:
        self._claimer = claimer
        self._channel = channel
        self._database = database
        self._mailbox = mailbox
        self._submit = submit
        self._desks = desks
        self._metrics = metrics
        self._stopping = stopping
        self._due_after_s = 0.0
        self._trials = Trials(database, metrics.retried)
        self.last_round = time.monotonic()

    def run(self) -> None:
        """Until told to stop and every answer is recorded. Raises `StopRunning` when the database stays away."""
        while not self._stopping():
            self._wait()
            self.round()
        while self._desks.busy:
            self._wait()
            self.round(claiming=False)

    def round(self, *, claiming: bool = True) -> int:
        """One transaction: what was answered, then what is next. Returns how many were claimed or recorded."""
        self.last_round = time.monotonic()
        answered, announced = self._collect(claiming)
        try:
            claimed = self._transact(answered, announced, claiming=claiming)
        except FAILURES as error:
            self._desks.undo()
            self._give_back(answered, announced)
            self._due_after_s = 0.0
            self._trials.failed(error)
            return 0
        self._trials.succeeded()
        self._settle(answered, claimed)
        return len(answered) + len(claimed.claims)

    # -- parts of a round ------------------------------------------------------------------------------

    def _wait(self) -> None:
        box = self._mailbox
        with box.bell:
            if not box.answered and not (box.announced and self._room() > 0):
                box.bell.wait(max(LOOK_LEAST_S, min(self._due_after_s, LOOK_MOST_S)))
            if box.answered and self._due_after_s > 0 and self._room() > 0:
                box.bell.wait_for(lambda: bool(box.announced), GATHER_S)

    def _collect(self, claiming: bool) -> tuple[list[Answered], list[Key]]:
        box = self._mailbox
        with box.bell:
            answered = list(box.answered)
            box.answered.clear()
            announced: list[Key] = []
            while claiming and box.announced and len(announced) < ROUND_MOST:
                announced.append(box.announced.popleft())
        return answered, announced

    def _give_back(self, answered: Sequence[Answered], announced: Sequence[Key]) -> None:
        with self._mailbox.bell:
            self._mailbox.answered.extendleft(reversed(answered))
            self._mailbox.announced.extendleft(reversed(announced))

    def _transact(self, answered: Sequence[Answered], announced: Sequence[Key], *, claiming: bool) -> Claimed:
        conn, singly = self._database.connection(), self._trials.singly
        with nullcontext() if singly else conn.pipeline() as pipeline, conn.transaction():
            reading, real = clock.read_at(conn)
            moment = Moment(reading.now(real), real, reading.rate)
            tx = Tx(conn, moment.now, pipeline)
            apart = Apart(conn, tx, moment) if singly else None
            if apart is None:
                record_answers(tx, moment, answered)
            else:
                apart.record(answered)
            if answered:
                failpoints.reach(Failpoint.DELIVERY_NOTED)
            claimed = Claimed()
            if claiming:
                keys = list(announced)
                most = min(self._room(), ROUND_MOST - len(keys))
                due: list[Key] = []
                per_tenant = min(most, self._desks.per_tenant)
                if most > 0:
                    due = self._claimer.due(
                        tx, moment, most=most, per_tenant=per_tenant, full=self._desks.full
                    )
                    keys += due
                if apart is None:
                    claimed = self._claimer.claim(tx, moment, keys, self._desks)
                else:
                    claimed = apart.claim(self._claimer, keys, self._desks)
                left = is_cut_off(due, most, per_tenant)
                self._due_after_s = self._sleep(tx, moment, claimed, left=left)
            claimed.held = apart.held if apart is not None else 0
            tx.settle()
            if claimed.claims:
                failpoints.reach(Failpoint.DELIVERY_LEASED)
        if answered:
            failpoints.reach(Failpoint.DELIVERY_RECORDED)
        if claimed.claims:
            failpoints.reach(Failpoint.DELIVERY_CLAIMED)
        return claimed

    def _sleep(self, tx: Tx, moment: Moment, claimed: Claimed, *, left: bool) -> float:
        """Seconds until there is something to look for again; `left` when more may be due than was looked at."""
        if claimed.handed_over or (
            left and any(each.verdict is not Verdict.DEFER for each in claimed.claims)
        ):
            return 0.0
        if self._room() <= 0:
            return self._desks.opens_in or LOOK_MOST_S
        due_at, lease_until = tx.rows(QUERIES["next_due"], {"channel": self._channel, "now": moment.now})[0]
        waits = [LOOK_MOST_S]
        if due_at is not None:
            waits.append((due_at - moment.now) / timedelta(seconds=1) / max(moment.pace, 1e-9))
        if lease_until is not None:
            waits.append((lease_until - moment.real) / timedelta(seconds=1))
        return min(waits)

    def _room(self) -> int:
        """How many more may be claimed; in-app needs nobody's hand."""
        return ROUND_MOST if self._channel == Channel.INAPP else self._desks.free

    def _settle(self, answered: Sequence[Answered], claimed: Claimed) -> None:
        """What holds only once it has been committed."""
        self._desks.keep()
        for each in answered:
            self._desks.leave(each.job.seat, each.answer)
            if each.answer is not None:
                self._metrics.answered(each.answer, each.ended_at - each.began_at)
        for claim in claimed.claims:
            self._metrics.claimed(claim.verdict, claim.reason)
        for _ in range(claimed.held):
            self._metrics.claimed(Verdict.HOLD, HoldReason.POISON)
        self._metrics.in_flight(self._desks.busy)
        self._submit(claimed.jobs)
        if (tracer := tracing.tracer()) is not None:
            spans.settled(tracer, self._channel, self.last_round, answered, claimed)
