"""What the reconciler asks of Kafka: where topics end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from connectors.kafka.topics import topic_ids

from connectors.settings import Settings
from producers.clock.reconcile import TopicEnds

ANSWER_WITHIN_S = 10.0
"""A broker that takes longer is away; the round ends as weather and the next one asks again."""


def admin_client(settings: Settings) -> AdminClient:
    """An admin client by the settings; it connects when first asked something, and again when it has to."""
    return AdminClient({"bootstrap.servers": settings.kafka_bootstrap, **settings.kafka_options})


class BrokerTopics:
    """Topics of a real broker, asked through an admin client: no consumer, no group, no subscription."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def ends(self, topics: Sequence[str]) -> Mapping[str, TopicEnds]:
        """The ends now of those topics that exist; raises `KafkaException` when the broker is silent."""
        known = topic_ids(self._admin, list(topics))
        latest = {
            TopicPartition(topic, partition): OffsetSpec.latest()
            for topic, meta in known.items()
            for partition in range(meta.partitions)
        }
        ends: dict[str, dict[int, int]] = {topic: {} for topic in known}
        if latest:
            futures = self._admin.list_offsets(latest, request_timeout=ANSWER_WITHIN_S)
            for place, future in futures.items():
                ends[place.topic][place.partition] = future.result().offset
        return {topic: TopicEnds(meta.topic_id, ends[topic]) for topic, meta in known.items()}
