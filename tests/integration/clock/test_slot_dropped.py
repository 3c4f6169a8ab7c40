"""The real thing: a slot is dropped under way; what it lost is found, sent again and decided once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry
from psycopg import conninfo

from connectors.debezium.apply import apply
from connectors.debezium.client import ConnectClient
from connectors.debezium.config import ConnectorConfig
from connectors.debezium.config import Database as Source
from connectors.kafka.clients import admin_client, consumer_config
from connectors.kafka.offsets import end_offsets
from connectors.kafka.topics import TopicSpec, topic_ids
from deploy.local.stack import Stack
from producers.clock.decide import Sweep
from producers.clock.reconcile import Reconciler, ReconcilerOptions
from producers.clock.signals import ClockMetrics
from tests.integration.clock.conftest import TENANT, Database

PARTITIONS = 2


class Group:
    """The smallest honest group: decides what it reads and moves its progress in one transaction."""

    def __init__(self, stack: Stack, database: Database, name: str, topic: str) -> None:
        self._database = database
        self._name = name
        self._topic = topic
        self._topic_id = topic_ids(admin_client(stack.settings), [topic])[topic].topic_id
        self._consumer = Consumer(consumer_config(stack.settings, name))
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.order: list[str] = []

    def __enter__(self) -> Group:
        self._consumer.assign([TopicPartition(self._topic, number, 0) for number in range(PARTITIONS)])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        conn = self._database.connect(self._database.consumer_dsn)
        while not self._done.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error():
                continue
            event_id = dict(message.headers() or ())["ce_id"].decode()  # type: ignore[union-attr]
            with conn.transaction():
                decided = conn.execute(
                    "INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at) "
                    "VALUES (%s, %s, %s, 'lifecycle', now()) ON CONFLICT DO NOTHING",
                    [event_id, TENANT, self._name],
                )
                conn.execute(
                    "INSERT INTO platform.consumer_progress VALUES (%s, %s, %s, %s, %s, now()) ON CONFLICT "
                    "(group_name, topic_id, partition) DO UPDATE SET next_offset = excluded.next_offset",
                    [self._name, self._topic_id, message.partition(), self._topic, message.offset() + 1],  # type: ignore[operator]
                )
            if decided.rowcount:
                self.order.append(event_id)


def until(holds: Callable[[], bool], why: Callable[[], object] = lambda: "it did not come to hold") -> None:
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline, why()
        time.sleep(0.05)


def slots(database: Database) -> list[bool]:
    """The slots of this database: one at most, and whether capture has it."""
    rows = database.run("SELECT active FROM pg_replication_slots WHERE database = current_database()")
    return [row[0] for row in rows]


@pytest.fixture
def connect(stack: Stack) -> Iterator[ConnectClient]:
    with ConnectClient(stack.settings.connect_url) as client:
        yield client


def test_a_slot_dropped_under_way_loses_nothing(
    stack: Stack, connect: ConnectClient, database: Database
) -> None:
    product = database.name.replace("clock_", "clk")
    topic, group = f"events.{product}", f"supersession.{product}"
    database.run("INSERT INTO platform.product (product) VALUES (%s)", product)
    database.run("DELETE FROM platform.group_subscription")
    database.run("INSERT INTO platform.group_subscription VALUES (%s, %s, 'epoch')", group, topic)
    database.slot(exists=False)
    where = conninfo.make_conninfo(
        stack.settings.connect_database_url.get_secret_value(), dbname=database.name
    )
    config = ConnectorConfig(database=Source.from_dsn(where), name=database.name, slot=database.name)
    admin = admin_client(stack.settings)

    def happened(count: int) -> list[str]:
        rows = database.run(
            "SELECT platform.append(%s, %s, 's' || n %% 5, 'x.happened', '{}')::text "
            "FROM generate_series(1, %s) n ORDER BY n",
            TENANT,
            product,
            count,
        )
        return [row[0] for row in rows]

    reconciler = Reconciler(
        database.books(),
        partial(end_offsets, admin),
        ClockMetrics(CollectorRegistry()),
        options=ReconcilerOptions(slot=database.name, answer_within_s=30.0, poll_s=0.05),
    )
    apply(connect, admin, config, [TopicSpec(topic, partitions=PARTITIONS)])
    try:
        until(lambda: slots(database) == [True], lambda: connect.status(config.name))
        with Group(stack, database, group, topic) as consumer:
            before = happened(20)
            until(lambda: set(consumer.order) == set(before))
            assert (calm := reconciler.round(Sweep.FULL)) is not None
            assert (calm.lost, calm.unanswered) == (0, frozenset())

            connect.stop(config.name)
            until(lambda: slots(database) == [False])
            database.slot(exists=False)
            missed = happened(20)
            connect.forget_offsets(config.name)
            connect.resume(config.name)
            until(lambda: slots(database) == [True], lambda: connect.status(config.name))
            after = happened(20)

            found = reconciler.round()
            assert found is not None
            assert found.sweep is Sweep.FULL
            assert (found.lost, found.resent, found.unanswered) == (20, 20, frozenset())
            until(lambda: set(consumer.order) == {*before, *missed, *after})
            healed = reconciler.round()
            assert healed is not None
            assert (healed.undecided, healed.lost) == (0, 0)
            assert len(consumer.order) == 60
            again = [event_id for event_id in consumer.order if event_id in missed]
            for lead in range(5):
                assert [e for e in again if missed.index(e) % 5 == lead] == missed[lead::5]
    finally:
        connect.delete(config.name)
        until(lambda: slots(database) != [True])
