"""Answers, recorded: compare-and-set on the attempt's token, every attempt logged, whoever waited woken."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from connectors.providers.model import Answer, Outcome, told
from consumers.delivery.claim import may_resend
from consumers.delivery.decide import record
from consumers.delivery.resolve import QUERIES, Moment, Resolution, resolve
from consumers.delivery.sender import Answered
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.errors import deciding
from consumers.runtime.tx import Tx

NOT_BEGUN = Answer(Outcome.RETRY, error="the lease was too old to begin the call")
_random = random.SystemRandom()


def record_answers(tx: Tx, moment: Moment, answered: Sequence[Answered]) -> list[Resolution]:
    """Record these. An answer to an attempt that has been given up meanwhile changes nothing, unless it says that
    the message was accepted: that is true whatever we thought. Raises what the database does, and `DecideError` for a
    defect.
    """
    with deciding("recording"):
        return _record(tx, moment, answered) if answered else []


def _record(tx: Tx, moment: Moment, answered: Sequence[Answered]) -> list[Resolution]:
    answers = [_storable(each.answer or NOT_BEGUN) for each in answered]
    keys = {
        "delivery_ids": text_array([each.job.message.delivery_id for each in answered]),
        "tenant_ids": text_array([each.job.message.tenant_id for each in answered]),
        "tokens": text_array([each.job.token for each in answered]),
    }
    found = tx.ask(
        QUERIES["lock_attempts"],
        {**keys, "accepted": [answer.outcome is Outcome.ACCEPTED for answer in answers]},
    )
    tx.send(
        QUERIES["log_attempts"],
        {
            **keys,
            "attempts": [each.job.message.attempt for each in answered],
            "began": [_instant(each.began_at) for each in answered],
            "ended": [_instant(each.ended_at) for each in answered],
            "outcomes": text_array([answer.outcome for answer in answers]),
            "statuses": [answer.status for answer in answers],
            "provider_refs": nullable_array([answer.provider_ref for answer in answers]),
            "errors": nullable_array([answer.error for answer in answers]),
            "latencies": [_milliseconds(each.began_at, each.ended_at) for each in answered],
        },
    )
    resolutions: list[Resolution] = []
    for ordinal, attempts, first_attempt_at in found.rows():
        each, answer = answered[ordinal - 1], answers[ordinal - 1]
        message = each.job.message
        made = record(
            answer,
            attempts=attempts,
            first_attempt_at=first_attempt_at or moment.now,
            now=moment.now,
            pace=moment.pace,
            may_resend=may_resend(each.job.seat.desk, first_attempt_at, moment),
            chance=_random.random(),
        )
        resolutions.append(
            Resolution(
                message.delivery_id,
                message.tenant_id,
                None,
                made.state,
                made.reason,
                made.due_at,
                answer.provider_ref,
            )
        )
    resolve(tx, moment, resolutions)
    return resolutions


def _storable(answer: Answer) -> Answer:
    """What a provider says of itself is of any length and may hold anything; a row and its index may not."""
    return replace(
        answer,
        provider_ref=None if answer.provider_ref is None else told(answer.provider_ref),
        error=None if answer.error is None else told(answer.error),
    )


def _milliseconds(began_at: float, ended_at: float) -> int:
    """How long a call took; none where the machine's clock was set back meanwhile."""
    return max(0, round((ended_at - began_at) * 1000))


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
