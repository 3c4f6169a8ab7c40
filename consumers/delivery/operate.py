"""What an operator may do to deliveries: let go out again what is on hold, cancel what waits.

Always all or none of those that are named; nobody has to find out which half was done. What is retried is claimed
like any other: the claim asks again whether it is still true, and says what it said when it was frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, assert_never

import psycopg

from connectors.postgres import clock
from connectors.postgres.sql import load
from consumers.delivery.resolve import Moment, Resolution, resolve
from consumers.runtime.tx import Tx
from schemas.states import DeliveryState, SuppressReason

QUERIES = load("consumers.delivery", "operate.sql")


class DeliveryRefused(Exception):  # noqa: N818 it is an answer to a person
    """What was asked cannot be done to these deliveries, and nothing was; the message says why, one line for each."""


class Named(NamedTuple):
    """A delivery that somebody named, as locked."""

    delivery_id: str
    tenant_id: str
    nudge_id: str | None
    state: DeliveryState
    reason: str | None
    due_at: datetime


def retry(conn: psycopg.Connection[Any], delivery_ids: Sequence[str]) -> int:
    """Queue these again, due now; returns how many. A worker sees them within seconds.

    Only what is on hold: whether it went out is not known, and the operator takes it upon themselves that it may
    arrive twice. Raises `DeliveryRefused`.
    """
    return _move(
        conn,
        delivery_ids,
        why_not_retried,
        lambda each, now: Resolution(
            each.delivery_id, each.tenant_id, each.nudge_id, DeliveryState.QUEUED, None, now
        ),
    )


def cancel(conn: psycopg.Connection[Any], delivery_ids: Sequence[str]) -> int:
    """Suppress these for good; returns how many. Those that waited behind them are woken, and a due nudge of which
    no delivery is left ends with them. Raises `DeliveryRefused`.
    """
    return _move(
        conn,
        delivery_ids,
        why_not_cancelled,
        lambda each, _: Resolution(
            each.delivery_id,
            each.tenant_id,
            each.nudge_id,
            DeliveryState.SUPPRESSED,
            SuppressReason.CANCELLED,
        ),
    )


def why_not_retried(each: Named) -> str | None:
    """Why this one cannot be sent again; None when it can."""
    match each.state:
        case DeliveryState.HELD:
            return None
        case DeliveryState.QUEUED:
            return f"is queued already, and due {each.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case DeliveryState.SENDING:
            return "is being sent; ask again when its outcome is known"
        case DeliveryState.SENT:
            return "has been sent; again would be twice"
        case DeliveryState.FAILED:
            return (
                f"has failed ({each.reason}), which is an end: the provider's answer stands. What should still be"
                " said is said by a new event"
            )
        case DeliveryState.SUPPRESSED:
            return f"is suppressed ({each.reason}), which is an end. What should still be said is said by a new event"
        case DeliveryState.EXPIRED:
            return "has expired, which is an end: it would be told too late"
        case _:
            assert_never(each.state)


def why_not_cancelled(each: Named) -> str | None:
    """Why this one cannot be cancelled; None when it can."""
    match each.state:
        case DeliveryState.QUEUED | DeliveryState.HELD:
            return None
        case DeliveryState.SENDING:
            return "is being sent; nobody can call it back. Ask again when its outcome is known"
        case DeliveryState.SENT:
            return "has been sent; nobody can call it back"
        case DeliveryState.FAILED | DeliveryState.SUPPRESSED | DeliveryState.EXPIRED:
            return f"is {each.state} already; nothing is left to cancel"
        case _:
            assert_never(each.state)


def _move(
    conn: psycopg.Connection[Any],
    delivery_ids: Sequence[str],
    why_not: Callable[[Named], str | None],
    to: Callable[[Named, datetime], Resolution],
) -> int:
    wanted = sorted(set(delivery_ids))
    with conn.transaction():
        found = [
            Named(delivery_id, tenant_id, nudge_id, DeliveryState(state), reason, due_at)
            for delivery_id, tenant_id, nudge_id, state, reason, due_at in conn.execute(
                QUERIES["lock_named"], {"delivery_ids": wanted}
            )
        ]
        _refuse(wanted, found, why_not)
        reading, real = clock.read_at(conn)
        moment = Moment(reading.now(real), real, reading.rate)
        tx = Tx(conn, moment.now)
        resolve(tx, moment, [to(each, moment.now) for each in found])
        tx.settle()
    return len(found)


def _refuse(wanted: Sequence[str], found: Sequence[Named], why_not: Callable[[Named], str | None]) -> None:
    """Raises `DeliveryRefused` when there is anything to say against any of them."""
    known = {each.delivery_id for each in found}
    said = [
        f"there is no delivery {delivery_id}; `tellonce deliveries list` shows which there are"
        for delivery_id in wanted
        if delivery_id not in known
    ]
    said += [
        f"delivery {each.delivery_id} {reason}" for each in found if (reason := why_not(each)) is not None
    ]
    if said:
        raise DeliveryRefused("\n".join([*said, "nothing was changed"]))
