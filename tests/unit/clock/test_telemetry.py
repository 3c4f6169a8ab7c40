"""Every process answers `/health` and `/metrics` from its own registry."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from connectors.telemetry import Health, TelemetryServer, serve


class Process:
    """A process under test: a registry, a health and its server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.health = Health(ok=True, detail={"group": "clock"})
        self.server: TelemetryServer = serve("127.0.0.1", 0, self.registry, lambda: self.health)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{self.server.host}:{self.server.port}{path}", timeout=5)


@pytest.fixture
def process() -> Iterator[Process]:
    process = Process()
    yield process
    process.server.close()


def test_metrics_show_what_was_registered_and_nothing_else(process: Process) -> None:
    Counter("rounds", "Rounds made.", registry=process.registry).inc(3)
    answer = process.get("/metrics")
    assert "rounds_total 3.0" in answer.text
    assert "python_info" not in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


def test_health_says_why(process: Process) -> None:
    assert process.get("/health").json() == {"ok": True, "group": "clock"}
    process.health = Health(ok=False, detail={"error": "database away"})
    answer = process.get("/health")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert answer.json()["error"] == "database away"


def test_anything_else_is_not_found(process: Process) -> None:
    assert process.get("/").status_code == httpx.codes.NOT_FOUND


def test_closing_twice_is_harmless_and_frees_the_port(process: Process) -> None:
    port = process.server.port
    process.server.close()
    process.server.close()
    again = serve("127.0.0.1", port, CollectorRegistry(), lambda: Health(ok=True))
    assert again.port == port
    again.close()
