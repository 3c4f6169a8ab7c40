"""What the reconciler concludes from what it read: pure, no I/O, no clock.

    noted ──► capture passed it? ──► every group passed the ends? ──► still undecided? ──► lost
                 │ no: ask again            │ no: ask again                │ no: complete
                 └── past the deadline ─────┴──► unanswered: an alarm of its own, never a verdict

A verdict needs all three answers, in this order: only then can a row without a decision be nowhere but lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

MAX_RESENDS = 3
"""How often one lost row is sent again. A row lost three times in a row is lost by something that resending
does not mend; a person has to look."""

TopicPartition = tuple[str, int]
"""Topic id (not its name: a recreated topic is another topic) and partition."""


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
    """Whether everything must be swept: the slot is another than last time, or nobody has looked before.

    A crash of the database loses statistics too and looks the same; it costs one full sweep.
    """
    return before is None or slot is None or slot.decoded_txns < before


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
