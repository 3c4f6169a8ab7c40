"""What a batch's records are, once the database has said which are visible and which decided: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from consumers.runtime.group import Decision
from consumers.runtime.records import Dead, Read
from schemas.states import DeadReason, DecisionOutcome, DropReason

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Identity = tuple[str, str]
"""(event id, tenant id): what the outbox and decisions are keyed by."""


class Line(NamedTuple):
    """One row of `platform.decision`, without what the whole batch shares."""

    event_id: str
    tenant_id: str
    outcome: DecisionOutcome
    reason: str | None = None
    nudge_id: str | None = None
    cancelled_nudge_id: str | None = None

    @classmethod
    def of(cls, decision: Decision) -> Line:
        """The row of a decision."""
        event = decision.event
        return cls(
            event.event_id,
            event.tenant_id,
            decision.outcome,
            decision.reason,
            decision.nudge_id,
            decision.cancelled_nudge_id,
        )

    @classmethod
    def of_dead(cls, dead: Dead) -> Line:
        """The row of a dead letter whose event is known: that it is dead is what this group decided of it."""
        event_id, tenant_id = identity(dead)
        assert event_id is not None
        assert tenant_id is not None
        return cls(event_id, tenant_id, DecisionOutcome.DEAD_LETTER, dead.reason)


@dataclass(slots=True)
class Triage:
    """A batch, sorted."""

    fresh: list[Read] = field(default_factory=list)
    """Committed facts without a decision, in their order: what the group is asked about."""
    refused: list[Decision] = field(default_factory=list)
    """Facts too old to act on."""
    dead: list[Dead] = field(default_factory=list)
    """Committed rows that do not decode."""
    absent: list[Read | Dead] = field(default_factory=list)
    """Not visible: not yet committed for this session, or never."""
    decided: int = 0
    """Decided before."""
    forgotten: int = 0
    """Past the horizon, their rows retired with their day."""

    @property
    def lines(self) -> list[Line]:
        """The decisions that need no group."""
        return [*map(Line.of, self.refused), *map(Line.of_dead, self.dead)]

    @classmethod
    def of(
        cls,
        known: Mapping[Identity, Read | Dead],
        exceptions: Iterable[tuple[int, bool, bool]],
        oldest: datetime,
    ) -> Triage:
        """Sort `known`, given (ordinal from 1, visible, decided) for each that is invisible or decided."""
        found = {ordinal: (visible, decided) for ordinal, visible, decided in exceptions}
        sorted_ = cls()
        for ordinal, item in enumerate(known.values(), start=1):
            visible, decided = found.get(ordinal, (True, False))
            too_old = isinstance(item, Read) and item.event.recorded_at < oldest
            if decided:
                sorted_.decided += 1
            elif not visible and too_old:
                sorted_.forgotten += 1
            elif not visible:
                sorted_.absent.append(item)
            elif isinstance(item, Dead):
                sorted_.dead.append(item)
            elif too_old:
                sorted_.refused.append(Decision(item.event, DecisionOutcome.DROPPED, DropReason.TOO_OLD))
            else:
                sorted_.fresh.append(item)
        return sorted_


def by_identity(batch: Sequence[Read | Dead]) -> tuple[dict[Identity, Read | Dead], list[Dead]]:
    """Each event once, as it came first; and the dead that cannot be told whose they are."""
    known: dict[Identity, Read | Dead] = {}
    nameless: list[Dead] = []
    for item in batch:
        if isinstance(item, Read):
            known.setdefault((item.event.event_id, item.event.tenant_id), item)
            continue
        event_id, tenant_id = identity(item)
        if event_id is None or tenant_id is None:
            nameless.append(item)
        else:
            known.setdefault((event_id, tenant_id), item)
    return known, nameless


def identity(dead: Dead) -> tuple[str | None, str | None]:
    """What Postgres can store of a dead letter's (event id, tenant id)."""
    return uuid_or_none(dead.event_id), storable(dead.tenant_id)


def not_committed(item: Read | Dead) -> Dead:
    """The dead letter of a record whose row never became visible."""
    known = item.event if isinstance(item, Read) else item
    return Dead(
        item.record,
        DeadReason.NOT_COMMITTED,
        "no outbox row with this id is visible: its transaction never committed, or the database was "
        "restored to before it; once the row exists, `tellonce dead-letter retry` sends it again",
        known.tenant_id,
        known.event_id,
        known.event_type,
    )


def uuid_or_none(text: str | None) -> str | None:
    """`text` when Postgres would take it as a UUID in its canonical form."""
    return text if text is not None and _UUID.fullmatch(text) else None


def storable(text: str | None) -> str | None:
    """Postgres text cannot hold NUL; what garbage said is kept readable."""
    return None if text is None else text.replace("\x00", "\\0")
