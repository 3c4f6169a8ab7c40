"""The storm: leads that hurry, turn back, retry and give up, through the loan service, from several threads.

What is planned is pure and the same for a seed. *Disorder*: the commits of a lead are not in the order in which
things happened. *Duplicates*: a request is sent again with its event id. *Concurrency*: one lead's requests
are in several threads' hands at once. *Late*: an old fact arrives from elsewhere, past the service's own checks.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
from psycopg import Connection

from deploy.demo.people import advisor_of, applicant_of, phone_of
from producers import outbox
from producers.products.loans.application import LoanError, Move
from producers.products.loans.service import PRODUCT, LoanService, When
from schemas.ids import uuid7_from

FUNNEL = (
    Move.START,
    Move.VERIFY_PHONE,
    Move.COMPLETE_CREDIT_CHECK,
    Move.EXPLORE_SAVINGS,
    Move.VIEW_OFFERS,
    Move.SUBMIT_OFFER,
)
"""The applicant's steps, as the journey of `loans` has them."""
THREADS_PER_TENANT = 3
BETWEEN = (timedelta(seconds=10), timedelta(seconds=10), timedelta(minutes=12))
"""From one thing that happens to a lead to the next, by the domain's clock. Of some it is told late: what they did
first is long due when the rest is still on its way.
"""
MISTYPED = "loans.credit_chek_done"
"""An event type that no product has: what a typing error in a foreign service makes of it."""
POISONED_LEAD = "lead-poison"
CALM = 30
CALM_PREFIX = "lead-calm-"
CALM_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Call:
    """One request, or one late fact that another program appends without asking the service."""

    tenant: str
    lead: str
    move: Move
    event_id: str
    occurred_at: datetime
    late: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one tenant's leads go through; `beginnings` come first, the rest all at once."""

    tenant: str
    beginnings: Sequence[Call]
    rest: Sequence[Call]


@dataclass(frozen=True, slots=True)
class Blown:
    """What was sent, and how much of it the loan service refused because the application's state forbids it."""

    requests: int
    retried: int
    refused: int


def plan(tenant: str, leads: int, now: datetime, seed: int = 1) -> Plan:
    """Plan a tenant's storm; what happened lies in the minutes before `now`."""
    chance = random.Random(f"{seed} {tenant}")  # noqa: S311 a story, no secret
    beginnings: list[Call] = []
    timed: list[tuple[float, Call]] = []
    for number in range(leads):
        lead = _lead(number)
        first, *others = _calls(chance, tenant, lead, now)
        beginnings.append(first)
        # A third of the leads come in a burst: several threads hold one lead's requests at the same time.
        slot, pace = chance.uniform(0, leads), chance.choice((0.01, 1.0, 4.0))
        for place, call in enumerate(others):
            at = slot + pace * (place + chance.uniform(0, 2.5))
            timed.append((at, call))
            if not call.late and chance.random() < 0.2:
                timed.append((at + pace * chance.uniform(0, 1), call))
    timed.sort(key=lambda entry: entry[0])
    return Plan(tenant, beginnings, [call for _, call in timed])


def _calls(chance: random.Random, tenant: str, lead: str, now: datetime) -> Iterator[Call]:
    moves, between = _moves(chance), chance.choice(BETWEEN)
    began = now - between * (len(moves) + 2)
    made_ms = int(now.timestamp() * 1000)

    def call(number: int, move: Move, at: datetime, *, late: bool = False) -> Call:
        event_id = uuid7_from(made_ms, f"{tenant} {lead} {number}".encode())
        return Call(tenant, lead, move, event_id, at, late)

    for number, move in enumerate(moves):
        yield call(number, move, began + between * number)
    if chance.random() < 0.4:
        move = chance.choice((Move.START, Move.COMPLETE_CREDIT_CHECK))
        yield call(len(moves), move, began + between / 2, late=True)


def _moves(chance: random.Random) -> list[Move]:
    """A lead's story in the order in which it happened."""
    moves = list(FUNNEL[: chance.randint(1, len(FUNNEL))])
    if moves[-1] is Move.SUBMIT_OFFER and chance.random() < 0.6:
        moves += [Move.SANCTION, Move.DISBURSE]
    elif chance.random() < 0.3:
        moves.append(Move.WITHDRAW)
        if chance.random() < 0.6:
            moves += [Move.REAPPLY, *FUNNEL[1 : chance.randint(2, 5)]]
    if chance.random() < 0.25:
        moves.insert(chance.randint(1, len(moves)), Move.ASSIGN_ADVISOR)
    return moves


def unleash(domain_dsn: str, plans: Sequence[Plan]) -> Blown:
    """Let it happen, with several threads per tenant, and one mistyped event each; returns when all is sent.

    `domain_dsn` is a login of role `domain` to which every tenant is granted.
    """
    refused = 0
    with ThreadPoolExecutor(THREADS_PER_TENANT * len(plans), thread_name_prefix="applicants") as pool:
        for stage in ([each.beginnings for each in plans], [each.rest for each in plans]):
            running = [
                pool.submit(_send, domain_dsn, queue)
                for queue in (deque(calls) for calls in stage)
                for _ in range(THREADS_PER_TENANT)
            ]
            refused += sum(each.result() for each in running)
    with psycopg.connect(domain_dsn, autocommit=True) as conn:
        for each in plans:
            with conn.transaction():
                outbox.append(
                    conn,
                    tenant_id=each.tenant,
                    product=PRODUCT,
                    subject_id=POISONED_LEAD,
                    event_type=MISTYPED,
                    payload={"applicant_id": "u-0", "credit_score": 700},
                )
    calls = [call for each in plans for call in (*each.beginnings, *each.rest)]
    distinct = Counter((call.tenant, call.event_id) for call in calls)
    return Blown(requests=len(calls), retried=len(calls) - len(distinct), refused=refused)


def _send(domain_dsn: str, calls: deque[Call]) -> int:
    """Send what is left until nothing is; several threads share one queue. Returns how many were refused."""
    refused = 0
    with psycopg.connect(
        domain_dsn, autocommit=True, application_name=threading.current_thread().name
    ) as conn:
        while True:
            try:
                call = calls.popleft()
            except IndexError:
                return refused
            try:
                _perform(conn, call)
            except LoanError:
                refused += 1


def _perform(conn: Connection[tuple[object, ...]], call: Call) -> None:
    loans = LoanService(conn, call.tenant)
    lead = call.lead
    when: When = {"occurred_at": call.occurred_at, "event_id": call.event_id}
    if call.late:
        with conn.transaction():
            outbox.append(
                conn,
                tenant_id=call.tenant,
                product=PRODUCT,
                subject_id=lead,
                event_type=call.move,
                payload={"applicant_id": applicant_of(lead)}
                | ({"credit_score": 640} if call.move is Move.COMPLETE_CREDIT_CHECK else {}),
                occurred_at=call.occurred_at,
                event_id=call.event_id,
            )
        return
    match call.move:
        case Move.START:
            loans.start_application(lead, applicant_id=applicant_of(lead), **when)
        case Move.VERIFY_PHONE:
            loans.verify_phone(lead, phone=phone_of(lead), **when)
        case Move.COMPLETE_CREDIT_CHECK:
            loans.complete_credit_check(lead, credit_score=712, **when)
        case Move.EXPLORE_SAVINGS:
            loans.explore_savings(lead, savings_options=3, **when)
        case Move.VIEW_OFFERS:
            loans.view_offers(lead, offers=4, **when)
        case Move.SUBMIT_OFFER:
            loans.submit_offer(lead, offer_id="offer-7", amount=25_000_000, **when)
        case Move.WITHDRAW:
            loans.withdraw(lead, reason="found another lender", **when)
        case Move.REAPPLY:
            loans.reapply(lead, **when)
        case Move.SANCTION:
            loans.sanction(lead, **when)
        case Move.DISBURSE:
            loans.disburse(lead, **when)
        case Move.ASSIGN_ADVISOR:
            loans.assign_advisor(lead, advisor_id=advisor_of(lead, next_one=True) or "", **when)


def leads_of(leads: int) -> list[str]:
    """Everybody whom the storm and the calm after it are about, in each tenant."""
    return [_lead(number) for number in range(leads)] + [
        f"{CALM_PREFIX}{number:02}" for number in range(CALM)
    ]


def _lead(number: int) -> str:
    return f"lead-{number:04}"


def planned(tenants: Sequence[str], leads: int, seed: int = 1) -> list[Plan]:
    """The storm of several tenants, from now."""
    now = datetime.now(UTC)
    return [plan(tenant, leads, now, seed) for tenant in tenants]


def trickle(domain_dsn: str, tenants: Sequence[str]) -> None:
    """A few applications more, one after the other: what the way takes when nothing else is going on.

    Each begins, and then its offer is submitted, which is told at once.
    """
    with psycopg.connect(domain_dsn, autocommit=True) as conn:
        for number in range(CALM):
            lead = f"{CALM_PREFIX}{number:02}"
            loans = LoanService(conn, tenants[number % len(tenants)])
            loans.start_application(lead, applicant_id=applicant_of(lead))
            time.sleep(CALM_EVERY_S)
            loans.submit_offer(lead, offer_id="offer-7", amount=25_000_000)
            time.sleep(CALM_EVERY_S)
