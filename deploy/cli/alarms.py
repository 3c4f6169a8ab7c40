"""Capture's alarms in words: what is wrong, and what to type."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.debezium.diagnose import Alarm

WORDS: Mapping[Alarm, str] = {
    Alarm.DATABASE_AWAY: "the database does not answer",
    Alarm.CONNECT_AWAY: "Kafka Connect does not answer",
    Alarm.CONNECTOR_MISSING: "there is no connector; `tellonce connector apply`",
    Alarm.CONNECTOR_HELD: "paused or stopped, and WAL piles up; `tellonce connector resume`",
    Alarm.TASK_FAILED: "its task failed; `tellonce run capture` restarts it, `tellonce connector restart` does so now",
    Alarm.SLOT_MISSING: "its slot is gone, and what commits is not captured; `tellonce run capture` makes it anew",
    Alarm.SLOT_REPLACED: "its slot was replaced by another; `tellonce run capture` makes it anew",
    Alarm.SLOT_LOST: "its slot's WAL is gone; `tellonce run capture` makes it anew",
    Alarm.PUBLICATION_MISSING: "the publication is gone, and what commits is not captured; its owner makes it again",
    Alarm.SLOT_AT_RISK: "the next checkpoint may remove WAL it needs; raise max_slot_wal_keep_size, or let it catch up",
    Alarm.LAGGING: "what it knows is older than a minute",
}


def in_words(alarm: Alarm) -> str:
    """The alarm's name, which metric and log use, and what it means."""
    return f"{alarm}: {WORDS[alarm]}"
