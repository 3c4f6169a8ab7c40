"""What the platform tells itself: the same cause gives the same record, byte for byte."""

from __future__ import annotations

from schemas.ids import id_time, id_version
from schemas.platform_events import nudge_due, timers_topic

CAUSE = "019ae2f0-0000-7000-8000-000000000001"
NUDGE = "019ae2f0-0000-8000-8000-000000000002"


def test_a_due_nudge_is_told_once_however_often_it_is_said() -> None:
    record = nudge_due(CAUSE, "acme", NUDGE)
    assert record == nudge_due(CAUSE, "acme", NUDGE)
    assert record.payload == b'{"nudge_id":"' + NUDGE.encode() + b'"}'
    assert (id_version(record.event_id), id_time(record.event_id)) == (8, id_time(CAUSE))


def test_other_nudges_and_tenants_have_other_records() -> None:
    ids = {nudge_due(CAUSE, "acme", NUDGE).event_id, nudge_due(CAUSE, "b", NUDGE).event_id}
    ids.add(nudge_due(CAUSE, "acme", CAUSE).event_id)
    assert len(ids) == 3


def test_timers_have_a_topic_per_product() -> None:
    assert timers_topic("loans") == "timers.loans"
