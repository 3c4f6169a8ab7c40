"""All that the loop knows of a consumer group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from consumers.runtime.tx import Tx
from schemas.envelope import Event
from schemas.states import DecisionOutcome


class Decision(NamedTuple):
    """What became of one event in one group: the line that `tellonce why` shows.

    `nudge_id` is the nudge that the event made, `cancelled_nudge_id` the one that it cancelled.
    """

    event: Event
    outcome: DecisionOutcome
    reason: str | None = None
    nudge_id: str | None = None
    cancelled_nudge_id: str | None = None


class Decisions(Protocol):
    """What a group decided for a batch: one `Decision` per event, in the events' order."""

    @property
    def decisions(self) -> Sequence[Decision]: ...


StateT = TypeVar("StateT")
DecisionsT = TypeVar("DecisionsT", bound=Decisions)


class Group(Protocol[StateT, DecisionsT]):
    """A consumer group's three steps. The runtime owns everything else.

    `load` and `write` run in one READ COMMITTED transaction, set-based, taking locks in the house's one
    order (progress → journey → nudge → window → notification → delivery → outbox). `decide` is pure: no
    I/O, no clock, no randomness, so that deciding again on fresh state converges.
    """

    @property
    def name(self) -> str:
        """Its Kafka consumer group, and its name in decisions, metrics and dead letters."""
        ...

    @property
    def topics(self) -> Sequence[str]:
        """What it reads."""
        ...

    def load(self, tx: Tx, events: Sequence[Event]) -> StateT:
        """Lock and read what the events need."""
        ...

    def decide(self, state: StateT, events: Sequence[Event]) -> DecisionsT:
        """One decision per event, in their order."""
        ...

    def write(self, tx: Tx, decisions: DecisionsT) -> None:
        """Write the state that the decisions change; every UPDATE asserts its row count."""
        ...
