"""librdkafka takes the configuration as it is, and what an installation says wins."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from connectors.kafka.clients import admin_config, consumer_config
from connectors.settings import Latency, Settings

SETTINGS = Settings(kafka_bootstrap="127.0.0.1:1")


def test_every_name_and_value_is_known_to_librdkafka() -> None:
    Consumer(consumer_config(SETTINGS, "group")).close()
    AdminClient(admin_config(SETTINGS))


def test_offsets_are_the_databases() -> None:
    config = consumer_config(SETTINGS, "group")
    assert config["enable.auto.commit"] is False
    assert config["auto.offset.reset"] == "error"
    assert config["partition.assignment.strategy"] == "cooperative-sticky"


def test_kafka_options_win() -> None:
    settings = Settings(
        kafka_bootstrap="a:1", kafka_options={"security.protocol": "SSL", "check.crcs": "false"}
    )
    for config in (consumer_config(settings, "group"), admin_config(settings)):
        assert config["security.protocol"] == "SSL"
        assert config["check.crcs"] == "false"


@pytest.mark.parametrize("latency", ["low", "balanced", "frugal"])
def test_no_profile_waits_for_more_than_one_record(latency: Latency) -> None:
    config = consumer_config(Settings(kafka_bootstrap="a:1", latency=latency), "group")
    assert config["fetch.min.bytes"] == 1
    assert config["fetch.wait.max.ms"] <= 1000


def test_each_call_gives_a_dict_of_its_own() -> None:
    consumer_config(SETTINGS, "group")["group.id"] = "other"
    assert consumer_config(SETTINGS, "group")["group.id"] == "group"
