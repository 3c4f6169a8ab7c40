"""The connector is brought to its configuration, and nothing happens when it has it."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from connectors.debezium.apply import Applied, Change, apply
from connectors.debezium.client import ConnectRefused, State
from connectors.kafka.topics import PartitionCountChanged, TopicSpec, topics_for
from tests.integration.capture.conftest import TOPIC, Capture, until

TOPICS = topics_for(["loans"])


def test_applied_again_changes_nothing(own: Capture) -> None:
    again = apply(own.connect, own.admin, own.config, TOPICS)
    assert (again.connector, again.changes, again.topics.changed) == (Applied.UNCHANGED, (), False)
    assert own.is_streaming


def test_only_what_differs_is_applied_and_streaming_goes_on(own: Capture) -> None:
    low = own.config.model_copy(update={"latency": "low"})
    done = apply(own.connect, own.admin, low, TOPICS)
    assert done.connector is Applied.UPDATED
    assert done.changes == (Change("poll.interval.ms", "10", "5"),)
    with own.tail() as tail:
        ids = own.happened(5)
        tail.until(lambda: set(tail.ids) >= set(ids))
    assert apply(own.connect, own.admin, low, TOPICS).connector is Applied.UNCHANGED


def test_a_changed_partition_count_is_refused_before_the_connector_is_touched(own: Capture) -> None:
    low = own.config.model_copy(update={"latency": "low"})
    with pytest.raises(PartitionCountChanged):
        apply(own.connect, own.admin, low, [TopicSpec(TOPIC, partitions=24)])
    assert apply(own.connect, own.admin, own.config, TOPICS).connector is Applied.UNCHANGED


def test_a_wrong_password_is_refused_with_what_the_database_said(own: Capture) -> None:
    wrong = own.config.database.model_copy(update={"password": SecretStr("not-it")})
    with pytest.raises(ConnectRefused, match="password authentication failed") as raised:
        apply(own.connect, own.admin, own.config.model_copy(update={"database": wrong}), TOPICS)
    assert "not-it" not in str(raised.value)
    assert own.is_streaming


def test_paused_nothing_arrives_and_resumed_nothing_is_missing(own: Capture) -> None:
    with own.tail() as tail:
        own.connect.pause(own.config.name)
        until(lambda: own.connect.status(own.config.name).tasks[0].state is State.PAUSED)
        ids = own.happened(5)
        applied = apply(own.connect, own.admin, own.config, TOPICS)
        assert applied.connector is Applied.UNCHANGED
        assert own.connect.status(own.config.name).state is State.PAUSED
        own.connect.resume(own.config.name)
        tail.until_count(5)
    assert tail.ids == ids


def test_restarted_nothing_is_missing(own: Capture) -> None:
    with own.tail() as tail:
        before = own.happened(5)
        own.connect.restart(own.config.name)
        after = own.happened(5)
        tail.until(lambda: set(tail.ids) >= {*before, *after})
    assert sorted(set(tail.ids), key=tail.ids.index) == [*before, *after]
