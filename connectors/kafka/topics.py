"""The platform's topics: the one place that says which exist, with how many partitions, kept for how long.

The broker creates none by itself. A keyed topic's partition count never changes in place: keys would move to
other partitions and overtake their own past; so a count that differs is refused, not altered.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

PARTITIONS: Final = 12
"""Divides evenly among 1, 2, 3, 4, 6 and 12 processes of a group."""

HORIZON: Final = timedelta(days=14)
"""How far back records are decided again, unless the installation says otherwise; outbox and decisions are kept for as
long."""
SLACK: Final = timedelta(days=2)
"""A record outlives its outbox row: its partitions are whole days, and upkeep may run late."""

RECORD_MAX_BYTES: Final = 9 * 1024 * 1024
"""The largest payload an installation may allow, 8 MiB, with its headers: a record that the
connector's producer or the broker refuses would stop the stream for good."""

CHANNELS: Final = ("whatsapp", "email", "inapp")

ANSWER_WITHIN_S: Final = 30.0
"""For one administrative request; a broker that takes longer is away."""
VISIBLE_WITHIN_S: Final = 60.0
"""A topic just created is known to every broker within milliseconds; past this something is wrong."""

_DAY_MS: Final = str(24 * 3600 * 1000)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be. Replication is the cluster's default: one node locally, three elsewhere."""

    name: str
    partitions: int = PARTITIONS
    retention: timedelta = HORIZON + SLACK

    @property
    def config(self) -> Mapping[str, str]:
        """Topic settings of ours; what is not named here is the cluster's."""
        return MappingProxyType(
            {
                "cleanup.policy": "delete",
                "retention.ms": str(int(self.retention.total_seconds() * 1000)),
                # By time alone: a full disk is an alarm, not a reason to lose what is not decided yet.
                "retention.bytes": "-1",
                # Whole segments expire; days keep what is held close to what is promised.
                "segment.ms": _DAY_MS,
                "max.message.bytes": str(RECORD_MAX_BYTES),
                # Retention counts from the arrival: a row captured late is not born old.
                "message.timestamp.type": "LogAppendTime",
            }
        )


@dataclass(frozen=True, slots=True)
class TopicMeta:
    """What a consumer's position belongs to: a topic made anew under an old name has another id."""

    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Ensured:
    """What `ensure_topics` did, by topic name; both empty when everything was as it should be."""

    created: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.created or self.altered)


class PartitionCountChanged(Exception):  # noqa: N818 the name says what happened, not that it is an error
    """A topic exists with another number of partitions than it should have; nothing was changed."""

    def __init__(self, different: Mapping[str, tuple[int, int]]) -> None:
        self.different = dict(different)
        found = ", ".join(
            f"{name} has {has}, should have {should}" for name, (has, should) in different.items()
        )
        super().__init__(
            "a keyed topic's partition count never changes in place, its keys would lose their order:"
            f" {found}."
            " Go back to the old count, or drain the topic, delete it and let it be created anew."
        )


def topics_for(products: Iterable[str], horizon: timedelta = HORIZON) -> list[TopicSpec]:
    """Every topic that these products and the channels need, sorted by name, kept for as long as the installation's
    `horizon` needs.
    """
    of_products = (f"{stage}.{product}" for product in products for stage in ("events", "timers"))
    names = {*of_products, *(f"deliveries.{channel}" for channel in CHANNELS)}
    return [TopicSpec(name, retention=horizon + SLACK) for name in sorted(names)]


def topic_ids(admin: AdminClient, names: Collection[str]) -> dict[str, TopicMeta]:
    """Id and partition count of those topics that exist. Raises KafkaException when the broker is away."""
    return {
        name: TopicMeta(str(found.topic_id), len(found.partitions))
        for name, found in _described(admin, sorted(set(names))).items()
    }


def ensure_topics(admin: AdminClient, specs: Sequence[TopicSpec]) -> Ensured:
    """Create what is missing and mend settings that differ; done again it changes nothing.

    Raises PartitionCountChanged before anything was touched, KafkaException when the broker refuses or is
    away. Safe to run by several processes at once. Returns once every topic can be used.
    """
    by_name = {spec.name: spec for spec in specs}
    present = topic_ids(admin, by_name)
    _refuse_changed_counts(by_name, present)
    created = [name for name in by_name if name not in present and _create(admin, by_name[name])]
    if len(present) < len(by_name):
        _refuse_changed_counts(by_name, _wait_for(admin, by_name))
    return Ensured(tuple(created), _mend(admin, [by_name[name] for name in present]))


def _refuse_changed_counts(specs: Mapping[str, TopicSpec], present: Mapping[str, TopicMeta]) -> None:
    different = {
        name: (meta.partitions, specs[name].partitions)
        for name, meta in present.items()
        if meta.partitions != specs[name].partitions
    }
    if different:
        raise PartitionCountChanged(different)


def _create(admin: AdminClient, spec: TopicSpec) -> bool:
    """Whether it was us: somebody else may create it at the same moment."""
    topic = NewTopic(
        spec.name, num_partitions=spec.partitions, replication_factor=-1, config=dict(spec.config)
    )
    try:
        admin.create_topics([topic], request_timeout=ANSWER_WITHIN_S)[spec.name].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def _wait_for(admin: AdminClient, specs: Mapping[str, TopicSpec]) -> dict[str, TopicMeta]:
    """A topic is usable once the brokers know of it, which its creation does not wait for."""
    deadline = time.monotonic() + VISIBLE_WITHIN_S
    while True:
        present = topic_ids(admin, specs)
        missing = sorted(specs.keys() - present.keys())
        if not missing:
            return present
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"created {VISIBLE_WITHIN_S:.0f} s ago and still unknown: {', '.join(missing)}"
            )
        time.sleep(0.02)


def _mend(admin: AdminClient, specs: Sequence[TopicSpec]) -> tuple[str, ...]:
    """Set the settings that differ from the specification; returns the topics that had any."""
    changes = _differences(admin, specs)
    if not changes:
        return ()
    for future in admin.incremental_alter_configs(changes, request_timeout=ANSWER_WITHIN_S).values():
        future.result()
    deadline = time.monotonic() + VISIBLE_WITHIN_S
    while _differences(admin, specs):  # brokers learn of it a moment later
        if time.monotonic() > deadline:
            raise TimeoutError(f"settings changed {VISIBLE_WITHIN_S:.0f} s ago are still the old ones")
        time.sleep(0.02)
    return tuple(change.name for change in changes)


def _differences(admin: AdminClient, specs: Sequence[TopicSpec]) -> list[ConfigResource]:
    """The changes that would bring each topic to its specification."""
    resources = [ConfigResource(ResourceType.TOPIC, spec.name) for spec in specs]
    if not resources:
        return []
    answers = admin.describe_configs(resources, request_timeout=ANSWER_WITHIN_S)
    found = {resource.name: future.result() for resource, future in answers.items()}
    changes = []
    for spec in specs:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in spec.config.items()
            if found[spec.name][key].value != value
        ]
        if entries:
            changes.append(ConfigResource(ResourceType.TOPIC, spec.name, incremental_configs=entries))
    return changes


def _described(admin: AdminClient, names: Sequence[str]) -> dict[str, TopicDescription]:
    if not names:
        return {}
    answers = admin.describe_topics(TopicCollection(list(names)), request_timeout=ANSWER_WITHIN_S)
    found = {}
    for name, future in answers.items():
        try:
            found[name] = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found
