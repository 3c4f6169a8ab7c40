"""Bring the connector to its configuration: topics first, and only what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from confluent_kafka.admin import AdminClient

from connectors.debezium.client import ConnectClient, ConnectRefused
from connectors.debezium.config import CLASS, HIDDEN, SECRET, ConnectorConfig, visible
from connectors.kafka.topics import Ensured, TopicSpec, ensure_topics


class Applied(StrEnum):
    """What `apply` did to the connector."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Change:
    """A key whose value differs; None where it is absent. A secret differs without being shown."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done. Both parts say nothing when all was as it should be."""

    connector: Applied
    changes: tuple[Change, ...]
    topics: Ensured


def apply(
    connect: ConnectClient, admin: AdminClient, config: ConnectorConfig, topics: Sequence[TopicSpec]
) -> Outcome:
    """Ensure `topics` and the connector's own, then create or update it; applied again it changes nothing.

    A paused or stopped connector stays as it is. Does not wait for the task to run. Raises ConnectError,
    PartitionCountChanged (before anything was touched), KafkaException.
    """
    ensured = ensure_topics(admin, [*topics, *config.own_topics])
    wanted = config.render()
    present = connect.config(config.name)
    changes = diff(present or {}, wanted)
    if present is not None and not changes:
        return Outcome(Applied.UNCHANGED, (), ensured)
    if present is None and CLASS not in connect.plugins():
        raise ConnectRefused(
            f"the worker at {connect.url} has no {CLASS};"
            " put Debezium's PostgreSQL connector into its plugin.path",
            status=404,
        )
    connect.put_config(config.name, wanted)
    return Outcome(Applied.CREATED if present is None else Applied.UPDATED, changes, ensured)


def diff(present: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[Change, ...]:
    """The keys that differ, sorted; secrets are masked on both sides."""
    before, after = visible(present), visible(wanted)
    return tuple(
        Change(key, before.get(key), after.get(key))
        for key in sorted(present.keys() | wanted.keys())
        if present.get(key) != wanted.get(key)
    )


def describe(change: Change) -> str:
    """One line for people."""
    if SECRET.search(change.key) and change.before == change.after == HIDDEN:
        return f"{change.key}: changed"
    return f"{change.key}: {_shown(change.before)} → {_shown(change.after)}"


def _shown(value: str | None) -> str:
    return "(none)" if value is None else value
