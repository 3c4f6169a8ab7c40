"""The command line, as a user types it, on the run's stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from deploy.cli.exits import Exit
from deploy.cli.main import invoke
from deploy.local.stack import Stack


class Tellonce(Protocol):
    """Runs a command line; returns what its `--json` says, else its standard output."""

    def __call__(self, line: str, *, code: int | None = Exit.OK) -> Any:
        """`code` is the exit code that the test expects; None: any."""


@pytest.fixture
def tellonce(
    pipeline: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Tellonce:
    """`tellonce` against the run's stack, whatever is configured where the suite runs."""
    monkeypatch.chdir(tmp_path)  # no local stack of whoever runs the suite
    monkeypatch.setenv("TELLONCE_DATABASE_URL", pipeline.consumer_dsn)
    monkeypatch.setenv("TELLONCE_ADMIN_DATABASE_URL", pipeline.owner_dsn)
    monkeypatch.setenv("TELLONCE_KAFKA_BOOTSTRAP", pipeline.bootstrap)
    monkeypatch.setenv("TELLONCE_CONNECT_URL", pipeline.connect_url)

    def typed(line: str, *, code: int | None = Exit.OK) -> Any:
        capsys.readouterr()
        found = invoke(line.split())
        said = capsys.readouterr()
        assert code is None or found == code, said.err
        return json.loads(said.out) if "--json" in line else said.out

    return typed
