"""A committed row arrives as the record that consumers are built for, in commit order, again when resent."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from itertools import pairwise

import psycopg

from deploy.local.passwords import DOMAIN
from producers import outbox, tenants
from tests.integration.capture.conftest import Capture
from tests.integration.capture.tail import Tail

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HEADERS = (
    *("id", "ce_id", "ce_type", "ce_source", "ce_subject", "ce_time", "ce_tenant"),
    *("content-type", "traceparent", "recorded_at"),
)


def test_a_json_event(shared: Capture) -> None:
    occurred = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    with shared.tail() as tail:
        with shared.domain() as conn, conn.transaction():
            event_id = outbox.append(
                conn,
                tenant_id=shared.tenant,
                product="loans",
                subject_id="L-1",
                event_type="loans.offer_submitted",
                payload={"offer": "O-7", "naïve": "ünïcode ✓"},
                occurred_at=occurred,
                traceparent=TRACE,
            )
        (record,) = tail.until_count(1)
    assert record.key == f"{shared.tenant}:L-1"
    assert json.loads(record.value) == {"offer": "O-7", "naïve": "ünïcode ✓"}
    assert record.names == HEADERS
    recorded = record.headers.pop("recorded_at")
    assert recorded is not None
    assert abs((datetime.now(UTC) - datetime.fromisoformat(recorded)).total_seconds()) < 60
    assert record.headers == {
        "id": event_id,
        "ce_id": event_id,
        "ce_type": "loans.offer_submitted",
        "ce_source": "loans",
        "ce_subject": "L-1",
        "ce_time": "2026-03-01T12:30:00.250000Z",
        "ce_tenant": shared.tenant,
        "content-type": "application/json",
        "traceparent": TRACE,
    }


def test_bytes_arrive_as_they_were_written(shared: Capture) -> None:
    body = b"\xc3\x01" + bytes(range(256)) + b"\x00\xff"
    with shared.tail() as tail:
        with shared.domain() as conn, conn.transaction():
            outbox.append(
                conn,
                tenant_id=shared.tenant,
                product="loans",
                subject_id="L-1",
                event_type="loans.offer_submitted",
                payload=body,
                content_type=outbox.AVRO,
            )
        (record,) = tail.until_count(1)
    assert record.value == body
    assert record.headers["content-type"] == "avro/binary"
    assert record.headers["traceparent"] is None


def test_a_resent_row_streams_again_with_its_id_at_a_new_offset(shared: Capture) -> None:
    with shared.tail() as tail:
        first, second = shared.happened(2)
        tail.until_count(2)
        with psycopg.connect(shared.settings.database_url.get_secret_value(), autocommit=True) as consumer:
            consumer.execute(
                "SELECT platform.resend(%s::uuid[], %s::text[])",
                [[second, first], [shared.tenant, shared.tenant]],
            )
        records = tail.until_count(4)
    assert tail.ids == [first, second, first, second]
    assert len({record.partition for record in records}) == 1
    assert all(earlier.offset < later.offset for earlier, later in pairwise(records))
    assert (records[2].value, records[2].headers) == (records[0].value, records[0].headers)


def test_a_lead_is_in_commit_order_whatever_the_order_of_ids(shared: Capture) -> None:
    """The first transaction takes its id first and commits last."""
    append = "SELECT platform.append(%s, 'loans', 'L-1', 'loans.initiated', '{}')::text"
    with shared.tail() as tail:
        with shared.domain() as slow, shared.domain() as quick:
            early = slow.execute(append, [shared.tenant]).fetchone()
            late = quick.execute(append, [shared.tenant]).fetchone()
            quick.commit()
            slow.commit()
        assert early is not None
        assert late is not None
        assert early < late
        tail.until_count(2)
    assert tail.ids == [late[0], early[0]]


def test_order_per_lead_under_concurrent_writers(shared: Capture) -> None:
    """Each writer owns a lead: what it committed first comes first."""
    leads = [f"L-{number}" for number in range(4)]
    committed: dict[str, list[str]] = {}
    writers = [
        threading.Thread(target=lambda lead=lead: committed.update({lead: shared.happened(50, subject=lead)}))
        for lead in leads
    ]
    with shared.tail() as tail:
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        records = tail.until_count(200)
    for lead in leads:
        assert [r.event_id for r in records if r.headers["ce_subject"] == lead] == committed[lead]


def test_a_rolled_back_row_never_arrives(shared: Capture) -> None:
    with shared.tail() as tail:
        with shared.domain() as conn:
            conn.execute(
                "SELECT platform.append(%s, 'loans', 'L-1', 'loans.initiated', '{}')", [shared.tenant]
            )
            conn.rollback()
        (after,) = shared.happened()
        tail.until_count(1)
    assert tail.ids == [after]


def test_a_tenant_created_at_run_time_streams_without_touching_the_connector(shared: Capture) -> None:
    before = shared.connect.config(shared.config.name)
    tenant = f"{shared.tenant}-new"
    with Tail(shared.settings, shared.admin, "events.loans", tenant) as tail:
        with psycopg.connect(shared.settings.admin_database_url.get_secret_value(), autocommit=True) as owner:
            tenants.create(owner, tenant, roles=[DOMAIN])
        with shared.domain() as conn:
            conn.execute("SELECT platform.append(%s, 'loans', 'L-1', 'loans.initiated', '{}')", [tenant])
            conn.commit()
        (record,) = tail.until_count(1)
    assert record.key == f"{tenant}:L-1"
    assert shared.connect.config(shared.config.name) == before


def test_the_largest_body_an_installation_may_allow(own: Capture) -> None:
    """It fits the connector's queue and producer, the topic, and a consumer's fetch."""
    largest = 8 * 1024 * 1024
    own.run("UPDATE platform.installation SET payload_limit = %s", largest)
    body = bytes(range(256)) * (largest // 256)
    with own.tail() as tail:
        with own.domain() as conn, conn.transaction():
            outbox.append(
                conn,
                tenant_id=own.tenant,
                product="loans",
                subject_id="L-1",
                event_type="loans.offer_submitted",
                payload=body,
                content_type=outbox.AVRO,
            )
        (record,) = tail.until_count(1)
    assert record.value == body
