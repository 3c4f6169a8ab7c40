"""The checks of messages: what arrived, held against what each lead's history allows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import Connection

from deploy.demo.checks import Check
from deploy.demo.messages import Delivery, Messages
from deploy.demo.replay import Replayed
from deploy.demo.sampler import QUERIES
from deploy.demo.scope import Scope
from deploy.demo.time import Time
from schemas.products.audience import Channel
from schemas.states import DecisionOutcome, DeliveryState, NudgeState

MOVES_ON: Final = frozenset(
    {
        DecisionOutcome.SCHEDULED,
        DecisionOutcome.IMMEDIATE,
        DecisionOutcome.ADVANCED,
        DecisionOutcome.ENDED,
        DecisionOutcome.RESTARTED,
    }
)
"""After one of these, what was to be said before is stale."""
OVERLAP: Final = timedelta(seconds=1)
"""A decision carries the time at which its transaction began. Of one that began so shortly before a claim, only the
rows' states say which committed first; the database orders those."""


def check(
    conn: Connection[Any], scope: Scope, replayed: Replayed, messages: Messages, time: Time
) -> list[Check]:
    """Every check, once no delivery is under way."""
    return [
        _nothing_stale(conn, scope, replayed, messages, time),
        _one_effect_each(messages),
        _every_one_ends(messages),
        _books_balance(conn, scope, messages),
    ]


def _nothing_stale(
    conn: Connection[Any], scope: Scope, replayed: Replayed, messages: Messages, time: Time
) -> Check:
    moved_on = _moved_on(conn, scope, replayed, time)
    judged, stale = 0, []
    for delivery, claimed in _arrived(messages, time):
        if delivery.nudge_id is None:
            continue  # an immediate step's or a lifecycle message: nothing makes them stale
        judged += 1
        further = moved_on.get(delivery.nudge_id)
        if delivery.nudge_state != NudgeState.SENT or (further is not None and further + OVERLAP < claimed):
            stale.append(delivery)
    return Check(
        "nobody got a stale message",
        judged > 0 and not stale,
        f"{judged:,} reminders that arrived, each against its lead's history when it was claimed, {len(stale)} stale"
        + (
            f"; such as {stale[0].kind} to {stale[0].user_id}, delivery {stale[0].delivery_id}"
            if stale
            else ""
        ),
    )


def _moved_on(conn: Connection[Any], scope: Scope, replayed: Replayed, time: Time) -> Mapping[str, datetime]:
    """When the first decision was made that left a nudge behind; real time, by nudge."""
    decided_at = {
        (tenant, event): at for tenant, event, at in conn.execute(QUERIES["decided_at"], scope.parameters)
    }
    standing: dict[tuple[str, str], str] = {}
    found: dict[str, datetime] = {}
    for each in replayed.superseded.decisions:
        if each.outcome not in MOVES_ON:
            continue
        event = each.event
        lead = event.tenant_id, event.subject_id
        if (nudge := standing.pop(lead, None)) is not None:
            found[nudge] = time.real(decided_at[event.tenant_id, event.event_id])
        if each.nudge_id is not None:
            standing[lead] = each.nudge_id
    return found


def _arrived(messages: Messages, time: Time) -> Sequence[tuple[Delivery, datetime]]:
    """Each visible effect: its delivery, and when that was claimed for it; real time. Of one that took several attempts
    only the last claim is kept: for it, when the call began that brought it, a moment after its claim.
    """
    at_providers = []
    for each in messages.arrivals:
        delivery, attempt = messages.by_id[each.delivery_id], messages.attempt_of(each)
        if delivery.claimed_at is not None and len(messages.attempts.get(each.delivery_id, ())) == 1:
            at_providers.append((delivery, time.real(delivery.claimed_at)))
        else:
            at_providers.append((delivery, attempt.began_at if attempt else each.received_at))
    in_app = [(each, time.real(each.shown_at)) for each in messages.deliveries if each.shown_at is not None]
    return at_providers + in_app


def _one_effect_each(messages: Messages) -> Check:
    """The key is one per cause, kind, person and channel; the provider honours it, whatever was tried again."""
    effects = Counter(
        (each.tenant_id, each.event_id, each.kind, each.user_id, each.channel)
        for each in (
            *(messages.by_id[arrival.delivery_id] for arrival in messages.arrivals),
            *(delivery for delivery in messages.deliveries if delivery.shown_at is not None),
        )
    )
    twice = sum(count > 1 for count in effects.values())
    again = sum(each.repeats for each in messages.arrivals)
    reused = messages.counts["key_reused"]
    return Check(
        "one visible effect per key",
        bool(effects) and not twice and not reused,
        f"{len(effects):,} keys; {again} requests came again under theirs and had no effect, {twice} had two",
    )


def _every_one_ends(messages: Messages) -> Check:
    """Accepted, or ended with a reason. What the provider has is what we say was accepted, or its answer was lost."""
    open_ends = [
        each
        for each in messages.deliveries
        if not DeliveryState(each.state).is_terminal or (each.state != DeliveryState.SENT and not each.reason)
    ]
    arrived: defaultdict[str, list[str]] = defaultdict(list)
    for arrival in messages.arrivals:
        arrived[arrival.delivery_id].append(arrival.reference)
    accepted = [each for each in messages.deliveries if each.state == DeliveryState.SENT]
    missing = [
        each
        for each in accepted
        if (
            each.shown_at is None
            if each.channel == Channel.INAPP
            else each.provider_ref not in arrived.get(each.delivery_id, ())
        )
    ]
    unsaid = [
        delivery_id
        for delivery_id in arrived
        if messages.by_id[delivery_id].state != DeliveryState.SENT
        and not any(attempt.outcome == "unknown" for attempt in messages.attempts[delivery_id])
    ]
    return Check(
        "every delivery was accepted, or ended with a reason",
        bool(accepted) and not open_ends and not missing and not unsaid,
        f"{len(accepted):,} accepted, {len(messages.deliveries) - len(accepted) - len(open_ends):,} ended otherwise,"
        f" {len(open_ends)} neither; {len(missing) + len(unsaid)} differ from what arrived",
    )


def _books_balance(conn: Connection[Any], scope: Scope, messages: Messages) -> Check:
    """For every group records in = decisions out; for every message decided on, somebody's deliveries."""
    groups = conn.execute(QUERIES["books"], scope.parameters).fetchall()
    intents = conn.execute(QUERIES["intents"], scope.parameters).fetchone()
    assert intents is not None  # counts have one row
    fired, told = intents
    unequal = [group for group, owed, decided in groups if owed != decided]
    return Check(
        "the books balance",
        len(groups) == len(scope.groups) and not unequal and fired == told and bool(messages.deliveries),
        f"{sum(owed for _, owed, _ in groups):,} records for {len(groups)} groups, each decided once;"
        f" {fired:,} messages decided on, {told:,} prepared, {len(messages.deliveries):,} deliveries"
        + (f"; not balanced: {', '.join(unequal)}" if unequal else ""),
    )
