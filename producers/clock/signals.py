"""Every log action and metric of the clock, in one place: what is not here is not emitted.

Alarms are built on these (the alert names the metric); their meaning must not change under a name.
"""

from __future__ import annotations

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Action(StrEnum):
    """What the clock logs."""

    STARTED = "clock_started"
    STOPPED = "clock_stopped"
    WEATHER = "clock_weather"
    """The database or the broker is away; the clock goes on trying."""
    ROUND = "reconciler_round"
    """A round ended with a verdict; at `info` only when something was lost or resent."""
    LOST = "reconciler_lost"
    """Alarm: capture lost rows. They are sent again."""
    GAVE_UP = "reconciler_gave_up"
    """Alarm: rows were lost however often they were sent; each is a dead letter now."""
    UNANSWERED = "reconciler_unanswered"
    """Alarm: no verdict within the deadline; the cause says who did not answer."""
    SLOT_CHANGED = "reconciler_slot_changed"
    """The replication slot is another than last time, or nobody looked before: everything is swept."""
    PARTITIONS = "partitions_kept_up"
    PARTITION_BUSY = "partition_busy"
    """A lock was not free within a quarter of a second; the next pass tries again."""
    PARTITION_KEPT = "partition_kept"
    """Alarm: a day behind the horizon holds records that a group has not decided; it is not dropped."""
    PARTITION_GAP = "partition_gap"
    """Alarm: a coming day has no partition; its rows will land in the default partition."""
    TIMERS_FIRED = "timers_fired"
    """A transaction fired nudges; at `debug`, there may be several a second."""
    TIMERS_WAIT = "timers_wait"
    """Alarm: nudges have been due for a minute while events of their subjects are undecided: capture or a
    supersession group stands still. Told once a minute."""
    TIME_SET = "clock_set"
    """Somebody moved the clock or changed its pace."""


class ClockMetrics:
    """The clock's metrics, on the registry given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.rounds = Counter(
            "tellonce_reconciler_rounds",
            "Rounds by how far they looked (sweep) and how they ended (complete, lost, unanswered, busy).",
            ["sweep", "end"],
            registry=registry,
        )
        self.lost = Counter(
            "tellonce_reconciler_lost",
            "Outbox rows that capture lost, by the group that lacks them.",
            ["group"],
            registry=registry,
        )
        self.resent = Counter(
            "tellonce_reconciler_resent", "Outbox rows sent again because they were lost.", registry=registry
        )
        self.gave_up = Counter(
            "tellonce_reconciler_gave_up",
            "Outbox rows lost however often they were sent, dead-lettered by group.",
            ["group"],
            registry=registry,
        )
        self.unanswered = Counter(
            "tellonce_reconciler_unanswered",
            "Rounds, or groups of one, without a verdict, by cause.",
            ["cause"],
            registry=registry,
        )
        self.undecided = Gauge(
            "tellonce_reconciler_undecided",
            "Rows without a decision when the last round began; a bounded count.",
            registry=registry,
        )
        self.answered_at = Gauge(
            "tellonce_reconciler_answered_timestamp_seconds",
            "When this process's last round with a full verdict was noted, in real time.",
            registry=registry,
        )
        self.partition_gaps = Gauge(
            "tellonce_partition_gaps",
            "Coming days without their partitions; more than 0 is an alarm.",
            registry=registry,
        )
        self.partitions_kept = Gauge(
            "tellonce_partitions_kept",
            "Days behind the horizon that cannot be dropped, for undecided records; more than 0 is an alarm.",
            registry=registry,
        )
        self.offset = Gauge(
            "tellonce_clock_offset_seconds", "How far the Clock is ahead of real time.", registry=registry
        )
        self.rate = Gauge(
            "tellonce_clock_rate", "How fast the Clock runs; 1 is real time.", registry=registry
        )
        self.timers_fired = Counter(
            "tellonce_timers_fired",
            "Due nudges that became pending and were told on timers.<product>.",
            ["product"],
            registry=registry,
        )
        self.timers_held_back = Counter(
            "tellonce_timers_held_back",
            "Times that a due nudge was not fired, because an event of its subject was undecided.",
            ["product"],
            registry=registry,
        )
        self.timers_waiting = Gauge(
            "tellonce_timers_waiting",
            "Due nudges that wait for their past to be complete; counted up to 10,000.",
            registry=registry,
        )
        self.timers_waiting_since = Gauge(
            "tellonce_timers_waiting_since_timestamp_seconds",
            "Since when the longest of them waits, in real time; 0 when none does. Old is an alarm.",
            registry=registry,
        )
        self.timers_late = Histogram(
            "tellonce_timers_late_seconds",
            "How late the latest nudge of a transaction was fired, in seconds of the Clock.",
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600, 3600),
            registry=registry,
        )
