"""The command line, as a user types it, on the run's stack."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from deploy.cli.exits import Exit
from deploy.cli.main import invoke
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from deploy.providers.running import LocalProviders, run
from producers import tenants
from producers.products.loans.service import install
from tests.acceptance.house import House, Lead, lead_of


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


@pytest.fixture(scope="module")
def house(pipeline: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Providers in a thread; no process yet."""
    folder = tmp_path_factory.mktemp("house")
    accounts = folder / "accounts.toml"
    stop, ready = threading.Event(), threading.Event()
    found: list[LocalProviders] = []

    def up(local: LocalProviders) -> None:
        found.append(local)
        ready.set()

    thread = threading.Thread(target=run, args=(stop,), kwargs={"accounts": accounts, "ready": up})
    thread.start()
    assert ready.wait(15)
    with psycopg.connect(pipeline.owner_dsn, autocommit=True) as owner:
        install(owner)
    settings = pipeline.settings
    environment = {
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_ACCOUNTS": str(accounts),
        "TELLONCE_PRODUCTS": "",
        "TELLONCE_METRICS_PORT": "0",
    }
    yield House(pipeline, found[0], environment, folder / "processes.log")
    stop.set()
    thread.join(15)


@pytest.fixture
def lead(house: House, tenant: str) -> Iterator[Lead]:
    """A lead of which nothing has happened yet."""
    house.local.faults.clear()
    with lead_of(house, tenant) as found:
        yield found


@pytest.fixture
def neighbour(house: House) -> Iterator[Lead]:
    """The same of another tenant."""
    tenant = f"t-{uuid.uuid4().hex[:16]}"
    with psycopg.connect(house.stack.owner_dsn, autocommit=True) as owner:
        tenants.create(owner, tenant, roles=[DOMAIN])
    with lead_of(house, tenant) as found:
        yield found
