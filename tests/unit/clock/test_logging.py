"""Logs are structured: an action, and the tenant, event and trace an entry concerns."""

from __future__ import annotations

import json
import logging as stdlib_logging
from collections.abc import Iterator

import pytest
import structlog

from connectors import logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = stdlib_logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_an_entry_says_which_tenant_event_and_trace(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("json")
    log = logging.get_logger("producers.clock")
    with logging.about(tenant="a", event_id="e1", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01"):
        log.warning("row_lost", attempts=1)
    log.info("round_done")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first | {"timestamp": ""} == {
        "timestamp": "",
        "level": "warning",
        "logger": "producers.clock",
        "action": "row_lost",
        "attempts": 1,
        "tenant": "a",
        "event_id": "e1",
        "trace_id": "ab" * 16,
    }
    assert "tenant" not in second


def test_libraries_come_out_in_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("json", "warning")
    stdlib_logging.getLogger("psycopg.pool").warning("error connecting in %r", "pool-1")
    stdlib_logging.getLogger("psycopg.pool").info("below the level")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["action"] == "error connecting in 'pool-1'"


def test_configuring_again_replaces(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("json")
    logging.configure("console", "debug")
    logging.get_logger("x").debug("once")
    assert capsys.readouterr().err.count("once") == 1


@pytest.mark.parametrize("traceparent", [None, "", "garbage", "00-short-cd-01"])
def test_no_trace_id_from_what_is_no_traceparent(traceparent: str | None) -> None:
    assert logging.trace_id(traceparent) is None
