"""The loop on the real broker and database: what is lost, cut, remade or away is noticed and outlived."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from connectors.kafka.clients import admin_client
from connectors.kafka.offsets import end_offsets
from connectors.kafka.topics import TopicSpec, ensure_topics, topic_ids
from connectors.postgres.migrate import register_products
from deploy.local.stack import Stack
from producers import tenants
from tests.integration.runtime.conftest import PRODUCTS, Fleet, until


@dataclass
class Line:
    """A product of its own, from the outbox to the decision, so that its topic may be broken."""

    stack: Stack
    owner: psycopg.Connection[Any]
    admin: AdminClient
    product: str
    tenant: str
    fleet: Fleet
    log: Path

    @property
    def topic(self) -> str:
        return f"events.{self.product}"

    def append(self, *subjects: str) -> None:
        """A first step for each subject."""
        for subject in subjects:
            self.owner.execute(
                "SELECT platform.append(%s, %s, %s, %s, '{}'::jsonb)",
                (self.tenant, self.product, subject, f"{self.product}.lead_handled"),
            )

    def decided(self) -> list[str]:
        """The subjects that have a live nudge."""
        rows = self.owner.execute(
            "SELECT subject_id FROM platform.nudge WHERE tenant_id = %s AND state = 'scheduled' ORDER BY 1",
            (self.tenant,),
        ).fetchall()
        return [row[0] for row in rows]

    def until_decided(self, *subjects: str) -> None:
        until(
            lambda: self.decided() == sorted(subjects),
            f"{subjects} decided; see {self.log.read_text()[-2000:]}",
        )

    def resend_undecided(self) -> None:
        """What the reconciler does with what it finds lost."""
        self.owner.execute(
            "SELECT platform.resend(array_agg(event_id), array_agg(tenant_id)) FROM platform.outbox o"
            " WHERE tenant_id = %s AND NOT EXISTS (SELECT FROM platform.decision d"
            " WHERE d.event_id = o.event_id AND d.tenant_id = o.tenant_id)",
            (self.tenant,),
        )

    def told_kafka(self) -> int:
        """How many records of the topic the group has behind it, as far as Kafka knows."""
        group = ConsumerGroupTopicPartitions(f"supersession.{self.product}")
        answer = self.admin.list_consumer_group_offsets([group])[group.group_id].result()
        places = answer.topic_partitions or []
        return sum(place.offset for place in places if place.topic == self.topic and place.offset > 0)

    def captured(self, count: int) -> None:
        """Wait until the topic has had so many records."""
        until(
            lambda: sum(end_offsets(self.admin, [self.topic])[self.topic].partitions.values()) >= count,
            f"{count} records captured",
        )


@pytest.fixture
def line(pipeline: Stack, owner: psycopg.Connection[Any], tmp_path: Path) -> Iterator[Line]:
    product = f"w{uuid.uuid4().hex[:12]}"
    folder = tmp_path / product
    shutil.copytree(PRODUCTS / "worklog", folder)
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        path.write_text(path.read_text().replace("worklog", product))
    register_products(owner, [product])
    admin = admin_client(pipeline.settings)
    ensure_topics(admin, [TopicSpec(f"{stage}.{product}") for stage in ("events", "timers")])
    tenant = f"t-{uuid.uuid4().hex[:12]}"
    tenants.create(owner, tenant)
    log = tmp_path / "loop.log"
    fleet = Fleet(pipeline, product, log, products=folder)
    try:
        yield Line(pipeline, owner, admin, product, tenant, fleet, log)
    finally:
        fleet.stop()


def test_a_restarted_process_goes_on_where_the_database_stands(line: Line) -> None:
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    assert line.fleet.stop() == [0]
    line.append("B")
    line.fleet.start()
    line.until_decided("A", "B")


def test_kafka_is_told_where_the_group_stands_while_it_idles_and_as_it_stops(line: Line) -> None:
    line.fleet.start()
    line.append("A", "B")
    line.until_decided("A", "B")
    until(lambda: line.told_kafka() == 2, "an idle process told Kafka")
    line.append("C")
    line.until_decided("A", "B", "C")
    assert line.fleet.stop() == [0]
    until(lambda: line.told_kafka() == 3, "a process that stopped told Kafka")


def test_a_database_that_restarts_costs_a_pause(line: Line) -> None:
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    line.stack.restart("postgres")
    with psycopg.connect(line.stack.owner_dsn, autocommit=True) as line.owner:
        line.append("B")
        line.until_decided("A", "B")
    assert line.fleet.stop() == [0]


def test_terminated_backends_are_weather(line: Line) -> None:
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    with psycopg.connect(line.stack.admin_dsn, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tellonce_consumer'"
        )
    line.append("B")
    line.until_decided("A", "B")


def test_a_recreated_topic_is_read_from_its_own_beginning(line: Line) -> None:
    line.fleet.start()
    line.append("A", "B", "C")
    line.until_decided("A", "B", "C")
    assert line.fleet.stop() == [0]
    before = topic_ids(line.admin, [line.topic])[line.topic].topic_id
    line.admin.delete_topics([line.topic])[line.topic].result()
    until(lambda: line.topic not in topic_ids(line.admin, [line.topic]), "the topic deleted")
    ensure_topics(line.admin, [TopicSpec(line.topic)])
    assert topic_ids(line.admin, [line.topic])[line.topic].topic_id != before
    line.append("D")
    line.fleet.start()
    line.until_decided("A", "B", "C", "D")


def test_retention_that_passed_the_position_is_told_and_nothing_is_lost(line: Line) -> None:
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    assert line.fleet.stop() == [0]
    line.append("B", "C")
    line.captured(3)
    ends = end_offsets(line.admin, [line.topic])[line.topic].partitions
    cut = [TopicPartition(line.topic, partition, end) for partition, end in ends.items() if end]
    for future in line.admin.delete_records(cut).values():
        future.result()
    line.fleet.start()
    until(lambda: "offset_out_of_range" in line.log.read_text(), "the gap told")
    line.resend_undecided()
    line.until_decided("A", "B", "C")


def test_a_changed_partition_count_stops_the_process_with_its_mend(line: Line) -> None:
    line.admin.create_partitions([NewPartitions(line.topic, 13)])[line.topic].result()
    until(lambda: topic_ids(line.admin, [line.topic])[line.topic].partitions == 13, "13 partitions")
    line.fleet.start()
    until(lambda: line.fleet.processes[0].poll() is not None, "the process ended")
    assert line.fleet.processes[0].returncode == 78
    assert "has 13 partitions and must have 12" in line.log.read_text()


def test_a_missing_topic_stops_the_process_with_its_mend(line: Line) -> None:
    line.admin.delete_topics([line.topic])[line.topic].result()
    until(lambda: line.topic not in topic_ids(line.admin, [line.topic]), "the topic deleted")
    line.fleet.start()
    until(lambda: line.fleet.processes[0].poll() is not None, "the process ended")
    assert line.fleet.processes[0].returncode == 78
    assert "does not exist; `tellonce connector apply` creates it" in line.log.read_text()


def test_a_database_restored_to_an_older_state_is_caught_up_with(line: Line) -> None:
    """The loop's memory is ahead of the database: it reads again from where the database stands."""
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    with line.owner.transaction():
        line.owner.execute("DELETE FROM platform.decision WHERE tenant_id = %s", (line.tenant,))
        line.owner.execute("DELETE FROM platform.nudge WHERE tenant_id = %s", (line.tenant,))
        line.owner.execute("DELETE FROM platform.journey_progress WHERE tenant_id = %s", (line.tenant,))
        line.owner.execute(
            "UPDATE platform.consumer_progress SET next_offset = 0 WHERE topic = %s", (line.topic,)
        )
    line.append("A")  # the same lead, so the same partition: its next batch meets the fence
    line.until_decided("A")
    rows = line.owner.execute(
        "SELECT coalesce(reason, outcome::text) FROM platform.decision WHERE tenant_id = %s ORDER BY event_id",
        (line.tenant,),
    ).fetchall()
    assert [row[0] for row in rows] == ["scheduled", "not_further"]
    assert '"fenced"' in line.log.read_text()


def test_a_suspended_process_that_wakes_late_overwrites_nothing(line: Line) -> None:
    """SIGSTOP, another process takes over, SIGCONT: the zombie's batch is fenced or skipped."""
    line.fleet.start()
    line.append("A")
    line.until_decided("A")
    zombie = line.fleet.processes[0]
    subprocess.run(["kill", "-STOP", str(zombie.pid)], check=True)
    try:
        line.append("B")
        line.fleet.start()
        line.until_decided("A", "B")
    finally:
        subprocess.run(["kill", "-CONT", str(zombie.pid)], check=True)
    line.append("C")
    line.until_decided("A", "B", "C")
    rows = line.owner.execute(
        "SELECT count(*), count(DISTINCT event_id) FROM platform.decision WHERE tenant_id = %s",
        (line.tenant,),
    ).fetchone()
    assert rows == (3, 3)
