"""What a delivery becomes, written, and what follows from it; whoever decided so: a claim, an answer or an operator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from connectors.postgres.sql import load
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.tx import Tx
from schemas.states import DeliveryState

QUERIES = load("consumers.delivery", "queries.sql")


class Moment(NamedTuple):
    """The Clock's time, the database's, and how many of the Clock's seconds pass in a real one."""

    now: datetime
    real: datetime
    pace: float


class Resolution(NamedTuple):
    """What a delivery becomes; `due_at` for one that goes back to the queue, `error` for what went wrong here."""

    delivery_id: str
    tenant_id: str
    nudge_id: str | None
    state: DeliveryState
    reason: str | None = None
    due_at: datetime | None = None
    provider_ref: str | None = None
    error: str | None = None


def resolve(tx: Tx, moment: Moment, resolutions: Sequence[Resolution]) -> None:
    """Write what deliveries become, and what follows from it: successors wake, a nudge that told nobody ends."""
    if not resolutions:
        return
    tx.run(
        QUERIES["resolve"],
        {
            "now": moment.now,
            "delivery_ids": text_array([each.delivery_id for each in resolutions]),
            "tenant_ids": text_array([each.tenant_id for each in resolutions]),
            "states": text_array([each.state for each in resolutions]),
            "reasons": nullable_array([each.reason for each in resolutions]),
            "due": [each.due_at for each in resolutions],
            "provider_refs": nullable_array([each.provider_ref for each in resolutions]),
            "errors": nullable_array([each.error for each in resolutions]),
        },
        expect=len(resolutions),
    )
    gone = [each for each in resolutions if each.state is not DeliveryState.QUEUED]
    if gone:
        wake_successors(tx, moment, [(each.delivery_id, each.tenant_id) for each in gone])
    untold = nudges(
        (each.nudge_id, each.tenant_id)
        for each in gone
        if each.state in (DeliveryState.SUPPRESSED, DeliveryState.EXPIRED)
    )
    if untold:
        tx.send(QUERIES["nudges_untold"], {"now": moment.now, **untold})


def nudges(keys: Iterable[tuple[str | None, str]]) -> dict[str, str]:
    """These (nudge id, tenant id) as parameters, each once and in one order; empty when no delivery is of a nudge."""
    found = sorted({(nudge_id, tenant_id) for nudge_id, tenant_id in keys if nudge_id is not None})
    if not found:
        return {}
    nudge_ids, tenant_ids = zip(*found, strict=True)
    return {"nudge_ids": text_array(nudge_ids), "tenant_ids": text_array(tenant_ids)}


def wake_successors(tx: Tx, moment: Moment, gone: Sequence[tuple[str, str]]) -> None:
    """Those that waited in order for one of these (delivery id, tenant id) are due now."""
    tx.send(
        QUERIES["wake_successors"],
        {
            "now": moment.now,
            "delivery_ids": text_array([delivery_id for delivery_id, _ in gone]),
            "tenant_ids": text_array([tenant_id for _, tenant_id in gone]),
        },
    )
