"""The accounts of a channel in this process: who may call whom, how often at once, and whether it is worth it.

Not thread-safe: the worker's own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from connectors.providers.accounts import Account
from connectors.providers.breaker import Breaker
from connectors.providers.model import Adapter, Answer


@dataclass(slots=True)
class Desk:
    """An account, its adapter, its breaker and its calls under way."""

    account: Account
    adapter: Adapter
    breaker: Breaker = field(default_factory=Breaker)
    busy: Counter[str] = field(default_factory=Counter)

    @property
    def free(self) -> int:
        """How many more calls may begin, were every tenant below its share."""
        return max(0, self.account.in_flight - self.busy.total())


@dataclass(frozen=True, slots=True)
class Seat:
    """The right to make one call."""

    desk: Desk
    tenant_id: str
    ticket: int


class Desks:
    """All of a channel."""

    def __init__(
        self,
        desks: Sequence[Desk],
        of_tenant: Callable[[str], str | None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desks = {desk.account.name: desk for desk in desks}
        self._of_tenant = of_tenant
        self._now = now
        self._taken: list[Seat] = []

    @property
    def adapters(self) -> list[Adapter]:
        """What calls go through."""
        return [desk.adapter for desk in self._desks.values()]

    def desk_of(self, tenant_id: str) -> Desk | None:
        """The tenant's account; None when there is none for it."""
        name = self._of_tenant(tenant_id)
        return None if name is None else self._desks[name]

    def take(self, tenant_id: str) -> Seat | None:
        """A seat, unless the account is full, the tenant has its share, or the provider is down."""
        desk = self.desk_of(tenant_id)
        if desk is None or desk.free == 0 or desk.busy[tenant_id] >= desk.account.tenant_in_flight:
            return None
        ticket, desk.breaker = desk.breaker.admit(self._now())
        if ticket is None:
            return None
        desk.busy[tenant_id] += 1
        seat = Seat(desk, tenant_id, ticket)
        self._taken.append(seat)
        return seat

    def give_back(self, seat: Seat) -> None:
        """It was taken in this transaction, and is not needed after all."""
        self._taken.remove(seat)
        self.leave(seat, None)

    def keep(self) -> None:
        """The transaction in which seats were taken has been committed."""
        self._taken.clear()

    @property
    def taken(self) -> int:
        """How many seats this transaction has taken so far."""
        return len(self._taken)

    def undo(self, since: int = 0) -> None:
        """It has not, or its part has not after so many were taken: nobody sits there."""
        undone = self._taken[since:]
        del self._taken[since:]
        for seat in undone:
            self.leave(seat, None)

    def leave(self, seat: Seat, answer: Answer | None) -> None:
        """The call is over; without an answer there was none."""
        desk = seat.desk
        desk.busy[seat.tenant_id] -= 1
        if desk.busy[seat.tenant_id] <= 0:
            del desk.busy[seat.tenant_id]
        if answer is None:
            desk.breaker = desk.breaker.unused(seat.ticket)
        else:
            desk.breaker = desk.breaker.after(seat.ticket, answer, self._now())

    @property
    def free(self) -> int:
        """How many more calls may begin, all accounts together."""
        now = self._now()
        return sum(desk.free for desk in self._desks.values() if desk.breaker.parked_for(now) == 0)

    @property
    def busy(self) -> int:
        """How many calls are under way."""
        return sum(desk.busy.total() for desk in self._desks.values())

    @property
    def per_tenant(self) -> int:
        """The largest share of a tenant."""
        return max((desk.account.tenant_in_flight for desk in self._desks.values()), default=1)

    @property
    def full(self) -> list[str]:
        """Tenants that have their share of calls under way: looking for more of theirs would be in vain."""
        return [
            tenant_id
            for desk in self._desks.values()
            for tenant_id, count in desk.busy.items()
            if count >= desk.account.tenant_in_flight
        ]

    @property
    def opens_in(self) -> float:
        """Seconds until a parked account may be called again; 0 when none is parked."""
        now = self._now()
        parked = [desk.breaker.parked_for(now) for desk in self._desks.values()]
        return min((wait for wait in parked if wait > 0), default=0.0)
