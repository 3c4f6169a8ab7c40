"""The least that a consumer of a topic can do, as a process: consume, decode, COPY into a bare table, commit.

What supersession is compared with: it polls as the runtime does and decides nothing.
"""

from __future__ import annotations

import json
import sys
import time
import uuid

import psycopg
from confluent_kafka import Consumer, TopicPartition

from connectors.kafka.clients import admin_client, consumer_config
from connectors.kafka.offsets import begin_offsets
from connectors.registry import load_catalogue
from connectors.settings import Settings
from consumers.runtime.loop import BATCH_LIMIT
from schemas.envelope import decode

TABLE = (
    "CREATE TABLE IF NOT EXISTS platform.bench_raw (event_id uuid NOT NULL, tenant_id text NOT NULL,"
    " subject_id text NOT NULL, event_type text NOT NULL, occurred_at timestamptz NOT NULL)"
)
COPY = "COPY platform.bench_raw (event_id, tenant_id, subject_id, event_type, occurred_at) FROM STDIN"


def main(topic: str, count: int) -> None:
    """Take `count` records from the beginning; print how long from the first batch's commit to the last's."""
    settings = Settings()
    catalogue = load_catalogue(settings.products)
    consumer = Consumer(consumer_config(settings, f"bench-raw-{uuid.uuid4().hex}"))
    begin = begin_offsets(admin_client(settings), [topic])[topic].partitions
    consumer.assign([TopicPartition(topic, number, offset) for number, offset in begin.items()])
    taken = first = 0
    began = 0.0
    with psycopg.connect(settings.database_url.get_secret_value()) as conn:
        while taken < count:
            message = consumer.poll(0.2)
            if message is None:
                continue
            batch = [message, *consumer.consume(BATCH_LIMIT - 1, timeout=0)]
            events = [
                decode(topic, each.key(), each.headers(), each.value(), catalogue=catalogue)  # type: ignore[arg-type]  # headers are bytes on the way in
                for each in batch
            ]
            with conn.cursor().copy(COPY) as copy:
                for event in events:
                    copy.write_row(
                        (
                            event.event_id,
                            event.tenant_id,
                            event.subject_id,
                            event.event_type,
                            event.occurred_at,
                        )
                    )
            conn.commit()
            taken += len(events)
            if not first:
                first, began = taken, time.perf_counter()
    took = time.perf_counter() - began
    consumer.close()
    sys.stdout.write(json.dumps({"events": taken - first, "seconds": took}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
