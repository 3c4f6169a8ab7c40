"""The stack that figures are measured on, and what every family does with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka.admin import AdminClient

from connectors.debezium.apply import apply
from connectors.debezium.client import ConnectClient
from connectors.debezium.config import ConnectorConfig
from connectors.debezium.slot import read_slot
from connectors.kafka.clients import admin_client
from connectors.kafka.offsets import end_offsets
from connectors.kafka.topics import topics_for
from connectors.postgres.migrate import register_products
from connectors.settings import Latency, Settings
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from producers import tenants
from tests.bench.machine import ROOT

Say = Callable[[str], None]
PRODUCTS = ("loans", "worklog", "warmup")
"""What the platform ships, the product that lives in the tests, and one that nobody reads."""
WITHIN_S = 180.0
CHUNK = 10_000
WARM_ROWS = 150_000
"""By then the connector's cost per row has stopped falling: from 406 µs to 67 µs, as Java compiles what runs often."""


class Rig:
    """A running stack with a connector. `superuser` is a connection that may do everything."""

    def __init__(
        self, stack: Stack, connect: ConnectClient, superuser: psycopg.Connection[Any], say: Say
    ) -> None:
        self.stack = stack
        self.superuser = superuser
        self.admin: AdminClient = admin_client(stack.settings)
        self.say = say
        self._connect = connect
        self._captured = 0

    @classmethod
    @contextmanager
    def open(cls, root: Path, say: Say) -> Iterator[Rig]:
        """A fresh stack below `root`; nothing is left of it afterwards."""
        Stack.erase(root)
        say("starting a stack of its own")
        try:
            with (
                Stack.start(root) as stack,
                ConnectClient(stack.connect_url) as connect,
                psycopg.connect(stack.admin_dsn, autocommit=True) as superuser,
            ):
                with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
                    register_products(owner, PRODUCTS)
                yield cls(stack, connect, superuser, say)
        finally:
            Stack.erase(root)

    def settings(self, latency: Latency = "balanced") -> Settings:
        """The stack's settings in a latency profile."""
        return self.stack.settings.model_copy(update={"latency": latency})

    def stream(self, latency: Latency = "balanced") -> None:
        """Topics and connector, in this profile, streaming."""
        config = ConnectorConfig.from_settings(self.settings(latency))

        def applied() -> bool:
            try:
                apply(self._connect, self.admin, config, topics_for(PRODUCTS))
            except TimeoutError as busy:  # a broker that is starved of CPU; applying again is safe
                self.say(str(busy))
                return False
            return True

        until(applied, "topics and connector are applied")

        def streaming() -> bool:
            slot = read_slot(self.superuser, config.slot)
            return slot is not None and slot.active and self._connect.status(config.name).is_streaming

        until(streaming, "the connector streams")

    def tenant(self, name: str) -> str:
        """A tenant that the loan service may write for."""
        with psycopg.connect(self.stack.owner_dsn, autocommit=True) as owner:
            tenants.create(owner, name, roles=[DOMAIN])
        return name

    def log(self, name: str) -> Path:
        """Where a child process says what it has to say."""
        return self.stack.layout.logs / f"bench-{name}.log"

    def fill(self, product: str, events: Sequence[tuple[str, str, str]]) -> None:
        """Commit (subject, type, tenant) in order, and wait until all of it is in Kafka."""
        topic = f"events.{product}"
        before = self.in_topic(topic)
        for start in range(0, len(events), CHUNK):
            append(self.superuser, product, events[start : start + CHUNK])
        until(lambda: self.in_topic(topic) >= before + len(events), "the outbox is in Kafka")
        self.superuser.execute("VACUUM (ANALYZE) platform.outbox")

    def warm(self) -> None:
        """Stream until connector and broker run as they do after their first minutes, unless they have already."""
        tenant = "warmup"
        if self._captured == 0:
            self.tenant(tenant)
        while self._captured < WARM_ROWS:
            self.say(f"warming up connector and broker: {self._captured:,} of {WARM_ROWS:,} rows")
            rows = [(f"W-{number % 500}", "warmup.ticked", tenant) for number in range(5 * CHUNK)]
            self.fill("warmup", rows)
            self._captured += len(rows)

    def in_topic(self, topic: str) -> int:
        """Records in the topic, all partitions together."""
        return sum(end_offsets(self.admin, [topic])[topic].partitions.values())

    def done(self, group: str) -> int:
        """How many records the group has behind it."""
        row = self.superuser.execute(
            "SELECT coalesce(sum(next_offset), 0)::bigint FROM platform.consumer_progress"
            " WHERE group_name = %s",
            [group],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def forget(self, group: str) -> None:
        """As if the group had never read anything; the outbox and Kafka keep what they have."""
        self.superuser.execute("TRUNCATE platform.decision, platform.journey_progress, platform.nudge")
        self.superuser.execute("DELETE FROM platform.consumer_progress WHERE group_name = %s", [group])
        self.superuser.execute("CHECKPOINT")


def append(conn: psycopg.Connection[Any], product: str, events: Sequence[tuple[str, str, str]]) -> None:
    """Commit (subject, type, tenant) as outbox rows in order. As a resend would: admitted before, so the
    trigger has nothing to ask.
    """
    conn.execute(
        "INSERT INTO platform.outbox (tenant_id, product, subject_id, key_id, topic, event_type, payload,"
        " occurred_at, recorded_at)"
        " SELECT tenant, %(product)s, subject, subject, 'events.' || %(product)s, type,"
        " convert_to('{\"activity\": ' || ordinal %% 7 || '}', 'UTF8'), now(), now() - interval '1 second'"
        " FROM unnest(%(subjects)s::text[], %(types)s::text[], %(tenants)s::text[]) WITH ORDINALITY"
        " AS event (subject, type, tenant, ordinal) ORDER BY ordinal",
        {
            "product": product,
            "subjects": [subject for subject, _, _ in events],
            "types": [kind for _, kind, _ in events],
            "tenants": [tenant for _, _, tenant in events],
        },
    )


def until(holds: Callable[[], bool], what: str, every_s: float = 0.1) -> None:
    """Wait for a condition; raises TimeoutError."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WITHIN_S:.0f} s: {what}")
        time.sleep(every_s)


def root_of_stack() -> Path:
    """Below build/, like everything that may be deleted."""
    return ROOT / "build" / "bench-stack"
