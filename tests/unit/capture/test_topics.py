"""Which topics there are follows from the products; how they are kept stands in one place."""

from __future__ import annotations

from datetime import timedelta

from connectors.kafka.topics import HORIZON, SLACK, TopicSpec, topics_for


def test_two_topics_per_product_and_one_per_channel() -> None:
    assert [topic.name for topic in topics_for(["loans", "fraud"])] == [
        *("deliveries.email", "deliveries.inapp", "deliveries.whatsapp"),
        *("events.fraud", "events.loans", "timers.fraud", "timers.loans"),
    ]


def test_products_share_no_topic() -> None:
    names = [topic.name for topic in topics_for(["a", "b", "a"])]
    assert len(names) == len(set(names))


def test_every_topic_outlives_the_horizon() -> None:
    assert timedelta(days=1) < SLACK, "its rows go by whole days"
    for topic in topics_for(["loans"]):
        assert topic.partitions == 12
        assert timedelta(milliseconds=int(topic.config["retention.ms"])) == HORIZON + SLACK
        assert topic.config["cleanup.policy"] == "delete"


def test_a_longer_horizon_keeps_topics_longer() -> None:
    for topic in topics_for(["loans"], horizon=timedelta(days=40)):
        assert topic.retention == timedelta(days=40) + SLACK


def test_retention_in_milliseconds() -> None:
    assert TopicSpec("t", retention=timedelta(hours=1)).config["retention.ms"] == "3600000"
