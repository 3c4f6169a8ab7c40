"""What the reconciler concludes from what it read: pure, no I/O, no clock.

    noted ──► capture passed it? ──► every group passed the ends? ──► still undecided? ──► lost
                 │ no: ask again            │ no: ask again                │ no: complete
                 └── past the deadline ─────┴──► unanswered: an alarm of its own, never a verdict

A verdict needs all three answers, in this order: only then can a row without a decision be nowhere but lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

MAX_RESENDS = 3
"""How often one lost row is sent again. A row lost three times in a row is lost by something that resending
does not mend; a person has to look."""

TopicPartition = tuple[str, int]
"""Topic id (not its name: a recreated topic is another topic) and partition."""


HOUR = timedelta(hours=1)
UNSEEN = HOUR / 2
"""Longer without a full verdict than this, and the hourly sweep may have missed rows: half of its reach."""
DAYS_EVERY = timedelta(minutes=15)
"""Ids older than an hour still arrive: long transactions, imports under way."""
FULL_EVERY = timedelta(days=1)
"""Ids of any age may arrive, given by their producer; nothing stays unseen for longer than a day."""


class Sweep(StrEnum):
    """How far a round looks, by the time inside event ids."""

    HOUR = "hour"
    """The last hour: every round."""
    DAYS = "days"
    """Yesterday and today (UTC)."""
    FULL = "full"
    """Every partition: daily, on demand, when the slot is another, when verdicts were missing."""


class Unanswered(StrEnum):
    """Why a round ended without a verdict; the label of metric and alarm."""

    NO_SLOT = "no_slot"
    """The replication slot does not exist: whatever commits now will never be captured."""
    SLOT_LOST = "slot_lost"
    """The slot exists and its WAL is gone; it has to be recreated."""
    CAPTURE = "capture"
    """The slot did not pass the noted position in time: a paused connector, a failed task, a broker away."""
    NO_TOPIC = "no_topic"
    """A topic that a group must decide does not exist."""
    GROUP = "group"
    """A group did not pass the noted ends in time: dead, stuck, or further behind than the deadline."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The replication slot as `pg_replication_slots` and its statistics show it. LSNs are integers."""

    confirmed_lsn: int | None
    wal_status: str | None
    decoded_txns: int
    """Transactions decoded since the slot was created; it only falls when the slot was recreated."""


@dataclass(frozen=True, slots=True)
class State:
    """What the rounds before left. It is kept in the database, because any clock may do the next one."""

    slot_txns: int | None = None
    """`Slot.decoded_txns` of the round before."""
    full_owed: bool = False
    """Somebody asked for a full sweep, or one did not end with a full verdict."""
    answered_at: datetime | None = None
    """When the last round with a full verdict was noted; real time, as the others."""
    days_at: datetime | None = None
    full_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An outbox row without the decision of a group that must decide it."""

    event_id: str
    tenant_id: str
    group: str
    topic: str
    position: int
    resends: int
    """How often the reconciler has already sent it again for this group."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A group that has not passed a topic partition's noted end."""

    group: str
    topic_id: str
    partition: int
    missing: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was lost, split by what happens now; each list in the order of `position`."""

    resend: tuple[Candidate, ...]
    give_up: tuple[Candidate, ...]

    @property
    def lost(self) -> int:
        return len(self.resend) + len(self.give_up)


@dataclass(frozen=True, slots=True)
class Round:
    """How a round ended. Without `unanswered` and not `truncated`, its verdict holds for all it looked at."""

    sweep: Sweep
    noted_at: datetime
    undecided: int = 0
    truncated: bool = False
    lost: int = 0
    resent: int = 0
    gave_up: int = 0
    unanswered: frozenset[Unanswered] = frozenset()
    behind: tuple[Behind, ...] = ()

    @property
    def is_full_verdict(self) -> bool:
        return not self.unanswered and not self.truncated

    @property
    def end(self) -> str:
        """One word for the metric."""
        if self.unanswered:
            return "unanswered"
        return "lost" if self.lost else "complete"


def capture_answer(slot: Slot | None, noted_lsn: int) -> Unanswered | None:
    """None when capture has passed the noted position: all that was visible then is in Kafka, or lost."""
    if slot is None:
        return Unanswered.NO_SLOT
    if slot.wal_status == "lost":
        return Unanswered.SLOT_LOST
    if slot.confirmed_lsn is None or slot.confirmed_lsn < noted_lsn:
        return Unanswered.CAPTURE
    return None


def slot_recreated(before: int | None, slot: Slot | None) -> bool:
    """Whether the slot is another than last time, or there is none.

    A crash of the database loses statistics too and looks the same; it costs one full sweep. A new slot
    that has already decoded more than the old one passes unseen here; the hourly sweep sees what it lost.
    """
    return slot is None or (before is not None and slot.decoded_txns < before)


def sweep_due(state: State, real: datetime, *, slot_changed: bool) -> Sweep:
    """The widest sweep that is due.

    A row that commits is within the reach of every hourly round of its first hour; so while full verdicts
    are less than half an hour apart, nothing lost can leave that reach unseen. When they were not,
    everything is swept.
    """
    if state.full_owed or slot_changed or _older(state.answered_at, real, UNSEEN):
        return Sweep.FULL
    if _older(state.full_at, real, FULL_EVERY):
        return Sweep.FULL
    return Sweep.DAYS if _older(state.days_at, real, DAYS_EVERY) else Sweep.HOUR


def sweep_from(sweep: Sweep, real: datetime) -> datetime | None:
    """Ids before this instant are not looked at; None when all are."""
    match sweep:
        case Sweep.HOUR:
            return real - HOUR
        case Sweep.DAYS:
            return real.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
        case Sweep.FULL:
            return None
    assert_never(sweep)


def _older(moment: datetime | None, real: datetime, than: timedelta) -> bool:
    return moment is None or real - moment >= than


def groups_behind(
    owed: Mapping[str, Iterable[str]],
    ends: Mapping[TopicPartition, int],
    progress: Mapping[tuple[str, str, int], int],
) -> list[Behind]:
    """The group partitions whose progress has not passed the ends.

    `owed` names each group's topic ids, `ends` the offset after the last record, `progress` the next offset
    by (group, topic id, partition). A group without a progress row has read nothing; an empty partition
    needs none.
    """
    return [
        Behind(group, topic_id, partition, end - progress.get((group, topic_id, partition), 0))
        for group, topic_ids in sorted(owed.items())
        for topic_id in sorted(topic_ids)
        for (of_topic, partition), end in sorted(ends.items())
        if of_topic == topic_id and progress.get((group, topic_id, partition), 0) < end
    ]


def judge(still_undecided: Iterable[Candidate], max_resends: int = MAX_RESENDS) -> Verdict:
    """Lost rows are sent again in their order, each a bounded number of times; then they are given up.

    A row lost for two groups is one row to send: when any of them may still have it, it is sent.
    """
    lost = sorted(still_undecided, key=lambda row: (row.position, row.group))
    return Verdict(
        resend=tuple(row for row in lost if row.resends < max_resends),
        give_up=tuple(row for row in lost if row.resends >= max_resends),
    )
