"""The one way to claim: lock, re-check, freeze, lease, in the caller's transaction.

Whoever names a delivery (Kafka announced it, Postgres says it is due) has no say in what becomes of it: what counts
is the row as locked and what is true now.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from psycopg.types.json import Jsonb

from connectors.logging import about, get_logger
from connectors.providers.model import Message, after_unknown, told
from consumers.delivery.decide import (
    CALL_TIMEOUT,
    LEASE,
    MEND_WITHIN,
    OVERTAKE_AFTER,
    Candidate,
    Claim,
    Standing,
    Verdict,
    claim,
    really,
)
from consumers.delivery.desks import Desk, Desks, Seat
from consumers.delivery.handover import Heir, hand_over
from consumers.delivery.resolve import QUERIES, Moment, Resolution, nudges, resolve
from consumers.delivery.rows import Row, Truth
from consumers.delivery.sender import Job
from consumers.preparation.model import ADDRESS
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.errors import deciding
from consumers.runtime.tx import Tx
from schemas.products.audience import Channel
from schemas.products.catalogue import Catalogue
from schemas.states import DeliveryState, HoldReason, no_longer
from schemas.templates.context import Context, Person, Tenant
from schemas.templates.failure import TemplateFailure
from schemas.templates.renderer import Renderer

_log = get_logger(__name__)

ASSIGNED = frozenset({"applicant", "advisor"})
"""Roles that somebody else may hold by now."""

Key = tuple[str, str]
"""(delivery id, tenant id)."""


@dataclass(slots=True)
class Claimed:
    """What one claim came to; the jobs may be sent once it has been committed."""

    jobs: list[Job] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    truths: Sequence[Truth] = ()
    """What each claim was decided on."""
    held: int = 0
    """How many are on hold because claiming or recording them failed."""
    handed_over: int = 0
    """How many somebody else may be told instead: those are due now."""

    def add(self, other: Claimed) -> None:
        """What a further claim of the same transaction came to."""
        self.jobs += other.jobs
        self.claims += other.claims
        self.truths = [*self.truths, *other.truths]
        self.handed_over += other.handed_over


class Frozen(NamedTuple):
    """What a delivery says, and to where, from its first claim on."""

    address: str
    content: Mapping[str, object]
    traceparent: str | None


class Claimer:
    """Claims the deliveries of one channel. Stateless; the caller owns the transaction."""

    def __init__(self, channel: Channel, catalogue: Catalogue, link_base: str) -> None:
        self._channel = channel
        self._catalogue = catalogue
        self._renderer = Renderer(catalogue)
        self._link_base = link_base.rstrip("/")

    def due(
        self, tx: Tx, moment: Moment, *, most: int, per_tenant: int, full: Sequence[str] = ()
    ) -> list[Key]:
        """What is due, tenants in turn; of the `full` ones only what a worker left behind."""
        rows = tx.rows(
            QUERIES["due"],
            {
                "channel": self._channel.value,
                "now": moment.now,
                "real": moment.real,
                "most": most,
                "per_tenant": per_tenant,
                "full": text_array(full),
            },
        )
        return [(delivery_id, tenant_id) for delivery_id, tenant_id, _ in rows]

    def claim(self, tx: Tx, moment: Moment, keys: Sequence[Key], desks: Desks) -> Claimed:
        """Claim these; each gets a verdict, and those that may go out become jobs, each with a seat that the caller
        gives back when its call is over, or when this transaction fails. Raises what the database does, and
        `DecideError` for a defect.
        """
        with deciding("claiming"):
            return self._claim(tx, moment, keys, desks)

    def _claim(self, tx: Tx, moment: Moment, keys: Sequence[Key], desks: Desks) -> Claimed:
        rows = self._lock(tx, keys)
        if not rows:
            return Claimed()
        if found := nudges((row.nudge_id, row.tenant_id) for row in rows):
            tx.send(
                QUERIES["lock_nudges"], found
            )  # a statement of its own: the next one sees what was locked
        truths = self._truths(tx, moment, rows)
        candidates = [
            self._candidate(moment, row, truth, desks) for row, truth in zip(rows, truths, strict=True)
        ]
        seats: dict[str, Seat] = {}

        def take(candidate: Candidate) -> bool:
            if self._channel is Channel.INAPP:
                return True
            seat = desks.take(candidate.tenant_id)
            if seat is None:
                return False
            seats[candidate.delivery_id] = seat
            return True

        claims = claim(candidates, now=moment.now, real=moment.real, pace=moment.pace, take=take)
        frozen: dict[int, Frozen] = {}
        born: list[int] = []
        for place, (row, truth) in enumerate(zip(rows, truths, strict=True)):
            if claims[place].verdict is not Verdict.SEND:
                continue
            if truth.content is not None and truth.address is not None:
                frozen[place] = Frozen(truth.address, truth.content, truth.frozen_traceparent)
                continue
            try:
                frozen[place] = self._render(moment, row, truth)
                born.append(place)
            except Exception as failure:  # noqa: BLE001 nothing has been read or written: it is this delivery's alone
                claims[place] = made = _unrendered(candidates[place], moment, failure)
                with about(tenant=row.tenant_id, event_id=row.event_id, traceparent=truth.traceparent):
                    _log.error(
                        "not_rendered", delivery=row.delivery_id, reason=made.reason, detail=made.error
                    )
                if (seat := seats.pop(row.delivery_id, None)) is not None:
                    desks.give_back(seat)
        self._freeze(tx, moment, [(rows[place], frozen[place]) for place in born])
        going = [(rows[place], body) for place, body in sorted(frozen.items())]
        jobs = self._lease(tx, moment, going, seats)
        heirs = [
            Heir(row, truth.holder)
            for row, truth, each in zip(rows, truths, claims, strict=True)
            if each.reason == no_longer(row.role) and truth.holder is not None
        ]
        handed_over = hand_over(tx, moment, self._channel, heirs)
        self._end(tx, moment, rows, claims)
        if self._channel is Channel.INAPP:
            self._show(tx, moment, going)
        return Claimed(jobs, claims, truths, handed_over=handed_over)

    def _candidate(self, moment: Moment, row: Row, truth: Truth, desks: Desks) -> Candidate:
        desk = desks.desk_of(row.tenant_id)
        return Candidate(
            delivery_id=row.delivery_id,
            tenant_id=row.tenant_id,
            state=DeliveryState(row.state),
            due_at=row.due_at,
            expires_at=row.expires_at,
            lease_until=row.lease_until,
            standing=Standing.NONE if row.nudge_id is None else Standing(truth.standing or Standing.GONE),
            is_complete=truth.is_complete,
            role=row.role,
            holds_role=row.role not in ASSIGNED or truth.holder == row.user_id,
            is_active=truth.active is True or row.role == ADDRESS,
            address=self._address(row, truth),
            has_account=desk is not None or self._channel is Channel.INAPP,
            may_resend=desk is None or may_resend(desk, row.first_attempt_at, moment),
            is_blocked=truth.is_blocked,
        )

    # -- reading ---------------------------------------------------------------------------------------

    def _lock(self, tx: Tx, keys: Sequence[Key]) -> list[Row]:
        if not keys:
            return []
        ordered = sorted(set(keys))
        return [
            Row(*row)
            for row in tx.rows(
                QUERIES["lock"],
                {
                    "channel": self._channel.value,
                    "delivery_ids": text_array([delivery_id for delivery_id, _ in ordered]),
                    "tenant_ids": text_array([tenant_id for _, tenant_id in ordered]),
                },
            )
        ]

    def _truths(self, tx: Tx, moment: Moment, rows: Sequence[Row]) -> list[Truth]:
        return [
            Truth(*row)
            for row in tx.rows(
                QUERIES["standing"],
                {
                    "channel": self._channel.value,
                    "overtake_before": moment.now - OVERTAKE_AFTER,
                    "notification_ids": text_array([row.notification_id for row in rows]),
                    "tenant_ids": text_array([row.tenant_id for row in rows]),
                    "delivery_ids": text_array([row.delivery_id for row in rows]),
                    "nudge_ids": nullable_array([row.nudge_id for row in rows]),
                    "event_ids": text_array([row.event_id for row in rows]),
                    "products": text_array([row.product for row in rows]),
                    "subject_ids": text_array([row.subject_id for row in rows]),
                    "user_ids": text_array([row.user_id for row in rows]),
                    "roles": text_array([row.role for row in rows]),
                    "lanes": text_array([row.lane for row in rows]),
                    "seqs": [row.seq for row in rows],
                },
            )
        ]

    def _address(self, row: Row, truth: Truth) -> str | None:
        if truth.address is not None:
            return truth.address
        if row.role == ADDRESS:
            return row.user_id
        match self._channel:
            case Channel.EMAIL:
                return truth.email
            case Channel.WHATSAPP | Channel.SMS:
                return truth.phone
            case _:
                return row.user_id

    def _render(self, moment: Moment, row: Row, truth: Truth) -> Frozen:
        loaded = self._catalogue.product(row.product)
        payload: Mapping[str, object] = {}
        if truth.event_type is not None and truth.payload is not None and truth.content_type is not None:
            payload = loaded.events[truth.event_type].read(truth.payload, truth.content_type.encode())
        address = self._address(row, truth)
        assert address is not None  # asked before
        context = Context(
            recipient=Person(row.user_id, truth.first_name, row.role),
            applicant=Person(None, truth.applicant, "applicant"),
            advisor=Person(None, truth.advisor, "advisor"),
            tenant=Tenant(row.tenant_id, truth.tenant_name or row.tenant_id),
            subject_id=row.subject_id,
            payload=payload,
            link=f"{self._link_base}/{row.product}/{row.subject_id}",
            occurred_at=truth.occurred_at or moment.now,
            due_at=row.due_at,
            zone=truth.zone,
        )
        rendered = self._renderer.render(row.product, row.kind, self._channel, truth.locale, context)
        return Frozen(address, dict(rendered), truth.traceparent)

    # -- writing ---------------------------------------------------------------------------------------

    def _freeze(self, tx: Tx, moment: Moment, bodies: Sequence[tuple[Row, Frozen]]) -> None:
        if not bodies:
            return
        tx.run(
            QUERIES["freeze"],
            {
                "now": moment.now,
                "delivery_ids": text_array([row.delivery_id for row, _ in bodies]),
                "tenant_ids": text_array([row.tenant_id for row, _ in bodies]),
                "addresses": text_array([body.address for _, body in bodies]),
                "contents": [Jsonb(body.content) for _, body in bodies],
                "traceparents": nullable_array([body.traceparent for _, body in bodies]),
            },
            expect=len(bodies),
        )

    def _lease(
        self, tx: Tx, moment: Moment, bodies: Sequence[tuple[Row, Frozen]], seats: Mapping[str, Seat]
    ) -> list[Job]:
        if not bodies:
            return []
        begin_before = time.monotonic() + (LEASE - CALL_TIMEOUT).total_seconds()
        tokens = [str(uuid.uuid4()) for _ in bodies]
        tx.run(
            QUERIES["lease"],
            {
                "now": moment.now,
                "lease_until": moment.real + LEASE,
                "delivery_ids": text_array([row.delivery_id for row, _ in bodies]),
                "tenant_ids": text_array([row.tenant_id for row, _ in bodies]),
                "tokens": text_array(tokens),
                "accounts": nullable_array(
                    [
                        seats[row.delivery_id].desk.account.name if row.delivery_id in seats else None
                        for row, _ in bodies
                    ]
                ),
            },
            expect=len(bodies),
        )
        if spoken := nudges((row.nudge_id, row.tenant_id) for row, _ in bodies):
            tx.send(QUERIES["nudges_sent"], {"now": moment.now, **spoken})
        return [
            Job(_message(row, body, self._channel), token, begin_before, seats[row.delivery_id])
            for (row, body), token in zip(bodies, tokens, strict=True)
            if row.delivery_id in seats
        ]

    def _show(self, tx: Tx, moment: Moment, bodies: Sequence[tuple[Row, Frozen]]) -> None:
        """In-app has no provider: the row that people see is written here, so it is there exactly once."""
        if not bodies:
            return
        tx.run(
            QUERIES["show_inapp"],
            {
                "now": moment.now,
                "delivery_ids": text_array([row.delivery_id for row, _ in bodies]),
                "tenant_ids": text_array([row.tenant_id for row, _ in bodies]),
                "user_ids": text_array([row.user_id for row, _ in bodies]),
                "contents": [Jsonb(body.content) for _, body in bodies],
            },
            expect=len(bodies),
        )
        sent = DeliveryState.SENT
        resolve(
            tx,
            moment,
            [Resolution(row.delivery_id, row.tenant_id, row.nudge_id, sent) for row, _ in bodies],
        )

    def _end(self, tx: Tx, moment: Moment, rows: Sequence[Row], claims: Sequence[Claim]) -> None:
        """Write what ends or waits."""
        states = {
            Verdict.SUPPRESS: DeliveryState.SUPPRESSED,
            Verdict.EXPIRE: DeliveryState.EXPIRED,
            Verdict.HOLD: DeliveryState.HELD,
            Verdict.DEFER: DeliveryState.QUEUED,
        }
        written = [
            Resolution(
                row.delivery_id,
                row.tenant_id,
                row.nudge_id,
                states[each.verdict],
                each.reason,
                each.until,
                error=each.error,
            )
            for row, each in zip(rows, claims, strict=True)
            if each.verdict in states
        ]
        resolve(tx, moment, written)


def _unrendered(candidate: Candidate, moment: Moment, failure: Exception) -> Claim:
    """A template is mended by whoever wrote it, and asked again; anything else is for a person to look at."""
    if isinstance(failure, TemplateFailure):
        until = moment.now + MEND_WITHIN * moment.pace
        return Claim(candidate, Verdict.DEFER, "template_failed", until, told(str(failure)))
    error = told(f"rendering it failed: {type(failure).__name__}: {failure}")
    return Claim(candidate, Verdict.HOLD, HoldReason.POISON, error=error)


def may_resend(desk: Desk, first_attempt_at: datetime | None, moment: Moment) -> bool:
    """Whether a message of which it is not known whether it went out goes out again."""
    since = moment.now - (first_attempt_at or moment.now)
    return after_unknown(desk.adapter, really(since, moment.pace)) == "resend"


def _message(row: Row, body: Frozen, channel: Channel) -> Message:
    return Message(
        delivery_id=row.delivery_id,
        idempotency_key=row.delivery_id,
        tenant_id=row.tenant_id,
        kind=row.kind,
        channel=channel.value,
        address=body.address,
        content=body.content,
        traceparent=body.traceparent,
        attempt=row.attempts + 1,
    )
