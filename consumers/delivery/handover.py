"""Whoever has a role now is told instead of whoever had it when the message was prepared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from consumers.delivery.resolve import QUERIES, Moment
from consumers.delivery.rows import Row
from consumers.preparation.decide import delivery_id, notification_id
from consumers.runtime.arrays import text_array
from consumers.runtime.tx import Tx
from schemas.ids import derived_id
from schemas.products.audience import Channel


class Heir(NamedTuple):
    """Somebody who is to be told what a delivery no longer tells."""

    row: Row
    user_id: str


def hand_over(tx: Tx, moment: Moment, channel: Channel, heirs: Iterable[Heir]) -> int:
    """Prepare for these what the deliveries they take over would have said, where the channel reaches them; before
    those end, so that a nudge is not left with nobody to tell. Nobody announces them: they are due. Returns how many
    it was tried for.

    The ids are those that preparation would have given them: who is told of this already, in whatever role, is not told
    again. Who was told no more because somebody else had the role meanwhile, and has it again, gets a second one.
    """
    once = {(heir.row.tenant_id, heir.row.event_id, heir.row.kind, heir.user_id): heir for heir in heirs}
    if not once:
        return 0
    taken = list(once.values())
    causes = [(each.row.event_id, each.row.tenant_id, each.row.kind, each.user_id) for each in taken]
    first = [delivery_id(*cause, channel) for cause in causes]
    tx.send(
        QUERIES["hand_over"],
        {
            "now": moment.now,
            "channel": channel.value,
            "delivery_ids": text_array([each.row.delivery_id for each in taken]),
            "tenant_ids": text_array([each.row.tenant_id for each in taken]),
            "user_ids": text_array([each.user_id for each in taken]),
            "notification_ids": text_array([notification_id(*cause) for cause in causes]),
            "first_ids": text_array(first),
            "again_ids": text_array(
                [
                    derived_id(each.row.event_id, each.row.tenant_id, "again", born, each.row.delivery_id)
                    for each, born in zip(taken, first, strict=True)
                ]
            ),
        },
    )
    return len(taken)
