"""A topic as plain data: committed outbox rows as the records the connector would make of them.

It lets a test decide what arrives when, twice, late or not at all, while everything behind it is real.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import psycopg

from consumers.runtime.fence import Partition
from consumers.runtime.records import Record

_ROW = (
    "SELECT message_key, payload, event_id::text, event_type, product, subject_id, occurred_at, tenant_id,"
    " content_type, traceparent, recorded_at FROM platform.outbox WHERE event_id = %s AND tenant_id = %s"
)


class SimulatedTopic:
    """One partition of one topic. Offsets go up by one; the same row may be published again."""

    def __init__(self, topic: str, topic_id: str) -> None:
        self.place = Partition(topic, topic_id, 0)
        self.records: list[Record] = []

    def publish(self, conn: psycopg.Connection[Any], event_id: str, tenant: str) -> Record:
        """The row as a record at the end of the partition."""
        row = conn.execute(_ROW, (event_id, tenant)).fetchone()
        assert row is not None, "only what is committed is published"
        key, payload, event, event_type, product, subject, occurred, tenant_id, content, trace, recorded = row
        return self.write(
            key.encode(),
            payload,
            [
                ("ce_id", event.encode()),
                ("ce_type", event_type.encode()),
                ("ce_source", product.encode()),
                ("ce_subject", subject.encode()),
                ("ce_time", occurred.astimezone(UTC).isoformat().encode()),
                ("ce_tenant", tenant_id.encode()),
                ("content-type", content.encode()),
                ("traceparent", None if trace is None else trace.encode()),
                ("recorded_at", recorded.astimezone(UTC).isoformat().encode()),
            ],
        )

    def write(
        self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> Record:
        """Any bytes as a record at the end of the partition, as somebody else might write them."""
        record = Record(self.place.topic, 0, len(self.records), key, headers, value)
        self.records.append(record)
        return record


def with_header(record: Record, name: str, value: bytes | None) -> Record:
    """The record with one header changed."""
    return record._replace(headers=[(n, value if n == name else v) for n, v in record.headers])
