"""What `tellonce run` loads: a process that nobody asked for traces has no tracer and nothing of an SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from connectors import tracing
from deploy.cli import running
from deploy.cli.main import app

def work(settings, stop):
    # All that the consumers' and the clock's processes are made of.
    import consumers.delivery.process, consumers.rules.consumer, consumers.runtime.process
    import consumers.supersession.consumer, producers.clock.run
    heavy = ("opentelemetry.sdk", "opentelemetry.exporter")
    print(tracing.tracer() is not None, any(name.startswith(heavy) for name in sys.modules))

running.groups = lambda catalogue: {"supersession.loans": work}
app(["run", "supersession.loans"])
"""


@pytest.mark.parametrize(
    ("environment", "traced"), [({}, False), ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True)]
)
def test_a_consumer_process_loads_an_sdk_only_for_an_endpoint(
    tmp_path: Path, environment: dict[str, str], traced: bool
) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.split() == [str(traced)] * 2
