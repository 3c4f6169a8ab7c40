"""`tellonce connector` as an operator uses it: pause, look, resume, restart; what waited meanwhile is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.debezium.client import ConnectClient
from connectors.debezium.config import NAME
from deploy.cli.exits import Exit
from deploy.cli.main import invoke
from deploy.demo.processes import running
from deploy.local.stack import Stack
from producers.products.loans.service import PRODUCT, LoanService, install
from tests.acceptance.conftest import Tellonce
from tests.acceptance.waiting import until

GROUP = f"supersession.{PRODUCT}"
UNDECIDED = """
SELECT count(*) FROM platform.outbox AS fact
 WHERE fact.tenant_id = %(tenant)s AND fact.topic = %(topic)s
   AND NOT EXISTS (SELECT FROM platform.decision AS decided
                    WHERE decided.event_id = fact.event_id AND decided.tenant_id = fact.tenant_id
                      AND decided.group_name = %(group)s)"""


def undecided(conn: psycopg.Connection[Any], tenant: str) -> int:
    """How many of the tenant's events supersession still owes a decision."""
    row = conn.execute(
        UNDECIDED.encode(), {"tenant": tenant, "topic": f"events.{PRODUCT}", "group": GROUP}
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.timeout(300)
def test_capture_is_paused_looked_at_resumed_and_restarted(
    pipeline: Stack, tenant: str, tellonce: Tellonce, tmp_path: Path
) -> None:
    with psycopg.connect(pipeline.owner_dsn, autocommit=True) as owner:
        install(owner)
    with (
        psycopg.connect(pipeline.domain_dsn, autocommit=True) as domain,
        psycopg.connect(pipeline.consumer_dsn, autocommit=True) as conn,
        running(pipeline.settings, [GROUP], tmp_path / "tellonce.log"),
    ):
        try:
            tellonce("connector pause")
            held = tellonce("connector status --json", code=Exit.PROBLEMS)
            assert held["streaming"] is False
            assert held["connector"]["state"] == "paused"
            assert held["alarms"] == ["connector_held"]
            shown = tellonce("connector status", code=Exit.PROBLEMS)
            assert "paused or stopped, and WAL piles up; `tellonce connector resume`" in shown
            (problem,) = (
                each
                for each in tellonce("status --json", code=Exit.PROBLEMS)["problems"]
                if each.startswith("capture")
            )
            assert "`tellonce connector resume`" in problem
            LoanService(domain, tenant).start_application("lead-1", applicant_id="u-1")
            assert undecided(conn, tenant) == 1
        finally:
            tellonce("connector resume")
        until(lambda: undecided(conn, tenant) == 0, "what was committed during the pause is decided")

        tellonce("connector restart")
        until(lambda: invoke(["connector", "status"]) == Exit.OK, "it streams again")
        after = tellonce("connector status --json")
        assert [task["state"] for task in after["connector"]["tasks"]] == ["running"]
        LoanService(domain, tenant).start_application("lead-2", applicant_id="u-2")
        until(lambda: undecided(conn, tenant) == 0, "what was committed after the restart is decided")


@pytest.mark.timeout(300)
def test_a_connector_that_does_not_do_what_it_is_told_is_not_called_running(
    tellonce: Tellonce, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request is accepted and nothing comes of it, as with workers that have lost each other."""
    monkeypatch.setattr("deploy.cli.connector.SETTLED_WITHIN_S", 0.3)
    monkeypatch.setattr(ConnectClient, "pause", lambda *_: None)

    assert invoke(["connector", "pause"]) == Exit.TEMPORARY
    assert f"connector {NAME} is still running" in capsys.readouterr().err
