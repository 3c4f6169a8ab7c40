"""Topics come from one place: made once, mended where they differ, refused where their keys would move."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from connectors.kafka import topics
from connectors.kafka.clients import consumer_config
from connectors.kafka.offsets import Watermarks, begin_offsets, end_offsets, watermarks
from connectors.kafka.topics import Ensured, PartitionCountChanged, TopicSpec, ensure_topics, topic_ids
from deploy.local.stack import Stack


@pytest.fixture
def name(admin: AdminClient) -> Iterator[str]:
    """Of a topic that nobody else uses; deleted afterwards if it came to exist."""
    made = f"test.{uuid.uuid4().hex}"
    yield made
    if topic_ids(admin, [made]):
        admin.delete_topics([made])[made].result()


def test_ensured_twice_changes_nothing(admin: AdminClient, name: str) -> None:
    assert ensure_topics(admin, [TopicSpec(name)]) == Ensured(created=(name,))
    assert not ensure_topics(admin, [TopicSpec(name)]).changed


def test_a_changed_retention_is_mended(admin: AdminClient, name: str) -> None:
    ensure_topics(admin, [TopicSpec(name, retention=timedelta(days=1))])
    assert ensure_topics(admin, [TopicSpec(name)]) == Ensured(altered=(name,))
    assert not ensure_topics(admin, [TopicSpec(name)]).changed


def test_a_changed_partition_count_is_refused_before_anything_is_touched(
    admin: AdminClient, name: str
) -> None:
    ensure_topics(admin, [TopicSpec(name, partitions=3)])
    other = f"{name}.other"
    with pytest.raises(PartitionCountChanged, match=f"{name} has 3, should have 6") as raised:
        ensure_topics(admin, [TopicSpec(other), TopicSpec(name, partitions=6)])
    assert raised.value.different == {name: (3, 6)}
    assert topic_ids(admin, [name, other])[name].partitions == 3
    assert other not in topic_ids(admin, [name, other])


def test_a_topic_made_anew_has_another_id(admin: AdminClient, name: str) -> None:
    ensure_topics(admin, [TopicSpec(name, partitions=1)])
    first = topic_ids(admin, [name])[name].topic_id
    assert topic_ids(admin, [name])[name].topic_id == first
    admin.delete_topics([name])[name].result()
    ensure_topics(admin, [TopicSpec(name, partitions=1)])
    assert topic_ids(admin, [name])[name].topic_id != first


def test_the_broker_creates_no_topic_by_itself(stack: Stack, admin: AdminClient, name: str) -> None:
    """Not for a producer, nor for a consumer that asks it to."""
    failed: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": stack.bootstrap, "message.timeout.ms": 3000})
    producer.produce(name, b"x", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(10) == 0
    assert [error and error.code() for error in failed] in (
        [KafkaError._UNKNOWN_TOPIC],
        [KafkaError._MSG_TIMED_OUT],  # whichever librdkafka comes to first
    )
    consumer = Consumer(consumer_config(stack.settings, name) | {"allow.auto.create.topics": True})
    consumer.subscribe([name])
    message = consumer.consume(1, 3.0)
    consumer.close()
    assert [error.code() for m in message if (error := m.error())] == [KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert topic_ids(admin, [name]) == {}


def test_where_a_topic_begins_and_ends(stack: Stack, admin: AdminClient, name: str) -> None:
    ensure_topics(admin, [TopicSpec(name, partitions=2)])
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    for _ in range(5):
        producer.produce(name, b"x", partition=1)
    assert producer.flush(10) == 0
    ends, begins = end_offsets(admin, [name, "absent"]), begin_offsets(admin, [name])
    assert set(ends) == {name}
    assert ends[name].topic_id == topic_ids(admin, [name])[name].topic_id
    assert (begins[name].partitions, ends[name].partitions) == ({0: 0, 1: 0}, {0: 0, 1: 5})
    assert watermarks(admin, [name]) == {(name, 0): Watermarks(0, 0), (name, 1): Watermarks(0, 5)}


def test_a_broker_that_is_away_is_an_error_not_an_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "ANSWER_WITHIN_S", 0.5)
    away = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "socket.timeout.ms": 1000})
    with pytest.raises(KafkaException):
        topic_ids(away, ["events.loans"])
