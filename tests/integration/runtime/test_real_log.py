"""The real log through the real pipeline: commit, WAL, Debezium, Kafka, three processes, Postgres."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.local.stack import Stack
from producers import tenants
from producers.importer.run import import_log
from producers.importer.spec import ImportSpec
from schemas.products.catalogue import Catalogue
from tests.integration.runtime import event_log
from tests.integration.runtime.conftest import Fleet, until
from tests.integration.runtime.event_log import Row

GROUP = "supersession.worklog"


def held_tenants(owner: psycopg.Connection[Any], count: int) -> list[str]:
    names = [f"bank-{uuid.uuid4().hex[:12]}" for _ in range(count)]
    for name in names:
        tenants.create(owner, name)
        tenants.hold(owner, name)
    return names


def import_for(owner: psycopg.Connection[Any], tenant: str, path: Path, catalogue: Catalogue) -> int:
    spec = ImportSpec(
        path=path,
        tenant=tenant,
        product="worklog",
        subject_column="CaseID",
        time_column="CompleteTimestamp",
        type_column="ActivityID",
        type_map=event_log.TYPES,
        fields={"activity": "ActivityID"},
    )
    return import_log(owner, spec, catalogue.product("worklog").events).imported


def decided(owner: psycopg.Connection[Any], tenant: str) -> int:
    row = owner.execute(
        "SELECT count(*) FROM platform.decision WHERE tenant_id = %s AND group_name = %s", (tenant, GROUP)
    ).fetchone()
    assert row is not None
    return int(row[0])


def all_decided(owner: psycopg.Connection[Any], names: Sequence[str], events: int) -> bool:
    return all(decided(owner, name) == events for name in names)


def assert_history(owner: psycopg.Connection[Any], tenant: str, log: Sequence[Row]) -> None:
    """Exactly what serial execution says: every decision, every cancelled nudge, every live one."""
    want = event_log.expected(log)
    outcomes = dict(
        owner.execute(
            "SELECT coalesce(reason, outcome::text), count(*) FROM platform.decision"
            " WHERE tenant_id = %s AND group_name = %s GROUP BY 1",
            (tenant, GROUP),
        ).fetchall()
    )
    assert outcomes.get("not_further", 0) == want.dropped
    assert outcomes.get("lifecycle", 0) == want.lifecycle
    assert outcomes.get("scheduled", 0) == want.cancelled + sum(want.live.values())
    assert sum(outcomes.values()) == len(log)
    cancelled = owner.execute(
        "SELECT count(*) FROM platform.nudge WHERE tenant_id = %s AND state = 'cancelled' AND reason = 'superseded'",
        (tenant,),
    ).fetchone()
    assert cancelled == (want.cancelled,)
    live = owner.execute(
        "SELECT step, count(*) FROM platform.nudge WHERE tenant_id = %s AND state = 'scheduled' GROUP BY step",
        (tenant,),
    ).fetchall()
    assert dict(live) == want.live


def test_a_slice_of_the_log_survives_kills_on_the_way(
    pipeline: Stack,
    worklog_fleet: Fleet,
    owner: psycopg.Connection[Any],
    catalogue: Catalogue,
    tmp_path: Path,
) -> None:
    """Two held tenants at once, three processes; one is killed, Connect is killed, the broker restarted."""
    log = event_log.rows(leads=1_000)
    path = tmp_path / "log.csv"
    event_log.write(path, log)
    names = held_tenants(owner, 2)
    worklog_fleet.start(3)
    for name in names:
        assert import_for(owner, name, path, catalogue) == len(log)
    until(lambda: decided(owner, names[0]) > 0, "the first decision")
    worklog_fleet.kill()
    pipeline.kill("connect")
    pipeline.restart("kafka")
    pipeline.restart("connect")
    worklog_fleet.start(1)
    until(partial(all_decided, owner, names, len(log)), "every event decided")
    for name in names:
        assert_history(owner, name, log)
        assert import_for(owner, name, path, catalogue) == 0
    until(lambda: worklog_fleet.started() == 4, "the replacement reads")
    assert set(worklog_fleet.stop()) == {0}


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_the_whole_log_survives_kills_on_the_way(
    pipeline: Stack,
    worklog_fleet: Fleet,
    owner: psycopg.Connection[Any],
    catalogue: Catalogue,
    tmp_path: Path,
) -> None:
    """The counts published with the log, for each tenant, first undisturbed and then with kills."""
    log = event_log.rows()
    path = tmp_path / "log.csv"
    event_log.write(path, log)
    for disturbed in (False, True):
        names = held_tenants(owner, 2)
        worklog_fleet.start(3)
        for name in names:
            import_for(owner, name, path, catalogue)
        if disturbed:
            worklog_fleet.kill()
            pipeline.kill("connect")
            pipeline.restart("connect")
            pipeline.restart("kafka")
            worklog_fleet.start(1)
        until(partial(all_decided, owner, names, len(log)), "all decided", 600)
        for name in names:
            assert_history(owner, name, log)
        until(lambda: worklog_fleet.started() >= 3, "every process reads")
        assert set(worklog_fleet.stop()) == {0}
