"""The real log through the real pipeline: commit, WAL, Debezium, Kafka, three processes, Postgres; then time moves past
all due times, and each lead gets one message.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.cli.children import Children
from deploy.demo.outside import Outside, outside
from deploy.local.stack import Stack
from producers import tenants
from producers.importer.run import import_log
from producers.importer.spec import ImportSpec
from schemas.products.catalogue import Catalogue
from tests.integration.runtime import event_log
from tests.integration.runtime.conftest import Fleet, environment, until
from tests.integration.runtime.event_log import Row

GROUP = "supersession.worklog"
_PEOPLE = """
WITH person AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone)
  SELECT %(tenant)s, lead, 'Ada', '+491511' || lead FROM unnest(%(leads)s::text[]) AS lead
)
INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)
SELECT %(tenant)s, 'worklog', lead, 'applicant', lead FROM unnest(%(leads)s::text[]) AS lead"""


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


def assert_each_lead_is_told_once(
    stack: Stack,
    owner: psycopg.Connection[Any],
    names: Sequence[str],
    log: Sequence[Row],
    folder: Path,
    within_s: float = 120.0,
) -> None:
    """Every tenant's clock runs again, far behind all due times: one message for each lead that reached a step, of the
    furthest one, and none of any other.
    """
    leads = list(dict.fromkeys(lead for lead, _, _ in log))
    reached = {f"+491511{lead}" for lead, activity, _ in log if activity in event_log.RANK}
    for name in names:
        owner.execute(_PEOPLE.encode(), {"tenant": name, "leads": leads})
    groups = (GROUP, "clock", "delivery.whatsapp")
    with outside(folder) as providers, (folder / "telling.log").open("ab") as output:
        addresses = {
            **environment(stack.settings),
            "TELLONCE_ACCOUNTS": str(providers.accounts),
            "TELLONCE_METRICS_PORT": "0",
        }
        with Children(groups, addresses, log=output) as children:
            for name in names:
                tenants.release(owner, name)
            until(
                lambda: (
                    all(arrived(providers, name) >= len(reached) for name in names)
                    and not unsent(owner, names)
                ),
                f"every lead is told; see {folder / 'telling.log'}",
                within_s,
            )
            assert children.ended() is None, (folder / "telling.log").read_text()[-2_000:]
        arrivals = providers.arrivals()
    want = event_log.expected(log)
    for name in names:
        assert Counter(each["to"] for each in arrivals if each["tenant"] == name) == dict.fromkeys(reached, 1)
        told = owner.execute(
            "SELECT step, count(*) FROM platform.nudge WHERE tenant_id = %s AND state = 'sent' GROUP BY step",
            (name,),
        ).fetchall()
        assert dict(told) == want.live, "each of its furthest step"


def have_started(fleet: Fleet, count: int) -> bool:
    """A process that does not listen to signals yet ends as one that was killed."""
    return fleet.started() == count


def arrived(providers: Outside, tenant: str) -> int:
    """How many messages the provider has of a tenant."""
    return int(providers.counts()["tenants"].get(tenant, 0))


def unsent(owner: psycopg.Connection[Any], names: Sequence[str]) -> bool:
    """Whether anything of these tenants is still to be fired, prepared, sent or recorded."""
    row = owner.execute(
        "SELECT EXISTS (SELECT FROM platform.nudge"
        " WHERE tenant_id = ANY(%(names)s) AND state IN ('scheduled', 'pending'))"
        " OR EXISTS (SELECT FROM platform.delivery"
        " WHERE tenant_id = ANY(%(names)s) AND state IN ('queued', 'sending'))",
        {"names": list(names)},
    ).fetchone()
    assert row is not None
    return bool(row[0])


def test_a_slice_of_the_log_survives_kills_on_the_way_and_each_lead_is_told_once(
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
    until(partial(have_started, worklog_fleet, 4), "the replacement reads")
    assert set(worklog_fleet.stop()) == {0}
    assert_each_lead_is_told_once(pipeline, owner, names, log, tmp_path)


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_the_whole_log_survives_kills_on_the_way_and_each_lead_is_told_once(
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
    for disturbed, processes in ((False, 3), (True, 3 + 3 + 1)):
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
        until(partial(have_started, worklog_fleet, processes), "every process reads")
        assert set(worklog_fleet.stop()) == {0}
        assert_each_lead_is_told_once(pipeline, owner, names, log, tmp_path, 300)
