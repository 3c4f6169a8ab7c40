"""A round taken apart: each answer and each claim behind a savepoint, because something among them is poison.

What fails alone is put on hold with what went wrong, for a person to look at; everything else of the round goes on. It
is what a dead letter is to a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from connectors.logging import about, get_logger
from connectors.postgres.errors import message
from connectors.providers.model import told
from consumers.delivery.claim import Claimed, Claimer, Key
from consumers.delivery.desks import Desks
from consumers.delivery.record import record_answers
from consumers.delivery.resolve import QUERIES, Moment, wake_successors
from consumers.delivery.sender import Answered
from consumers.runtime.trials import Poison, alone
from consumers.runtime.tx import Tx
from schemas.states import HoldReason

_log = get_logger(__name__)


@dataclass(slots=True)
class Apart:
    """A transaction in which a round is taken apart."""

    conn: psycopg.Connection[Any]
    tx: Tx
    moment: Moment
    held: int = 0
    """How many went on hold."""

    def record(self, answered: Sequence[Answered]) -> None:
        """Record each. One that cannot be recorded leaves its delivery on hold: it has been called."""
        for each in answered:
            done = alone(self.conn, self.tx, partial(record_answers, self.tx, self.moment, [each]))
            if isinstance(done, Poison):
                outcome = "nothing" if each.answer is None else each.answer.outcome.value
                key = each.job.message.delivery_id, each.job.message.tenant_id
                self._hold(key, each.job.token, f"answered {outcome}, and recording it failed", done.failure)

    def claim(self, claimer: Claimer, keys: Sequence[Key], desks: Desks) -> Claimed:
        """Claim each."""
        every = Claimed()
        for key in dict.fromkeys(keys):
            seated = desks.taken
            done = alone(self.conn, self.tx, partial(self._claim_one, claimer, key, desks, seated))
            if isinstance(done, Poison):
                desks.undo(seated)
                self._hold(key, None, "claiming it failed", done.failure)
            else:
                every.add(done)
        return every

    def _claim_one(self, claimer: Claimer, key: Key, desks: Desks, seated: int) -> Claimed:
        desks.undo(seated)  # of the try before
        return claimer.claim(self.tx, self.moment, [key], desks)

    def _hold(self, key: Key, token: str | None, what: str, failure: Exception) -> None:
        """An attempt under way is its worker's: only with its `token` is that put on hold."""
        delivery_id, tenant_id = key
        error = said(what, failure)
        held = self.tx.rows(
            QUERIES["hold"],
            {
                "now": self.moment.now,
                "real": self.moment.real,
                "delivery_id": delivery_id,
                "tenant_id": tenant_id,
                "token": token,
                "reason": HoldReason.POISON,
                "error": error,
            },
        )
        if held:
            self.held += 1
            with about(tenant=tenant_id):
                _log.error("delivery_held", delivery=delivery_id, reason=HoldReason.POISON, detail=error)
            wake_successors(self.tx, self.moment, [key])


def said(what: str, failure: Exception) -> str:
    """What went wrong, on one line; of a database's failure without the row that it quotes."""
    text = message(failure) if isinstance(failure, psycopg.Error) else str(failure)
    return told(f"{what}: {type(failure.__cause__ or failure).__name__}: {text}")
