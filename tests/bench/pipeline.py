"""From a domain service's commit to the provider that has the request, everything running on this machine.

One immediate step per lead and one WhatsApp message per step: supersession, rules, delivery, the clock, the connector,
the broker, Postgres, the producer and the provider share the cores.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from connectors.kafka.topics import PARTITIONS
from connectors.settings import Latency
from deploy.cli.children import Children
from tests.bench.figures import Figure, of_latencies, of_rounds
from tests.bench.machine import ROOT
from tests.bench.rig import WITHIN_S, Rig, until

NAMES: Final = ("end_to_end_latency_ms", "pipeline_rate", "drain_rate")
GROUPS: Final = ("supersession.loans", "rules.loans", "delivery.whatsapp", "clock")
TOPICS: Final = 4
"""Supersession reads two, rules and delivery one each."""
EVENTS: Final = 20_000
ROUNDS: Final = 5
WRITERS: Final = 4
RATE: Final = 200
WARM_UP: Final = 5 * RATE
LATENCY_ROUNDS: Final = 5
ROUND: Final = 5 * RATE
IN_FLIGHT: Final = 256
PROFILES: Final[tuple[Latency, ...]] = ("balanced", "low")

_PEOPLE = """
WITH numbered AS (SELECT n FROM generate_series(1, %(leads)s::int) AS n),
people AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone)
  SELECT %(tenant)s, %(prefix)s || n, 'Ada', '+4915112345678' FROM numbered)
INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)
SELECT %(tenant)s, 'loans', %(prefix)s || n, 'applicant', %(prefix)s || n FROM numbered"""
_APPEND = (
    "SELECT platform.append(%s, 'loans', %s, 'loans.offer_submitted',"
    ' \'{"applicant_id": "a", "offer_id": "o-1", "amount": 1000000}\')::text'
)


@dataclass(frozen=True, slots=True)
class Provider:
    """The local WhatsApp endpoint, a process of its own."""

    url: str
    accounts: Path

    def count(self, tenant: str) -> int:
        """How many messages it has of a tenant."""
        return int(self._get("/counts.json")["tenants"].get(tenant, 0))

    def received(self, tenant: str) -> dict[str, float]:
        """When it had each delivery's request, in seconds since 1970."""
        found: dict[str, float] = {}
        after = 0
        while page := self._get(f"/messages.json?tenant={tenant}&after={after}&limit=1000"):
            for each in page:
                found.setdefault(each["delivery"], float(each["received_at"]))
                after = int(each["number"])
        return found

    def tell(self, *faults: Mapping[str, object]) -> None:
        """It misbehaves so from now on; without any, no more."""
        body = json.dumps({"clear": True, "faults": faults}).encode()
        request = urllib.request.Request(
            f"{self.url}/control", body, {"Content-Type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(request, timeout=30).close()

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)


def measure(rig: Rig, wanted: Collection[str]) -> list[Figure]:
    """The rates, live and drained, then latency in both profiles; after a first live round that only warms up."""
    figures: list[Figure] = []
    rig.stream()
    rig.warm()
    with local_provider(rig) as provider:
        _live(rig, provider, 0)
        if "pipeline_rate" in wanted:
            rates = [_live(rig, provider, number) for number in range(1, ROUNDS + 1)]
            note = f"{EVENTS:,} events, each its own transaction of {WRITERS} connections, one delivery each"
            figures.append(of_rounds("pipeline_rate", "live", "deliveries/s", rates, EVENTS, note))
        if "drain_rate" in wanted:
            rates = [_drain(rig, provider, number) for number in range(1, ROUNDS + 1)]
            note = f"{EVENTS:,} events committed beforehand; first request to last"
            figures.append(of_rounds("drain_rate", "backlog", "deliveries/s", rates, EVENTS, note))
        if "end_to_end_latency_ms" in wanted:
            for latency in PROFILES:
                figures.append(_latency(rig, provider, latency))
                rig.say(
                    f"end_to_end_latency_ms {latency}: p50 {figures[-1].p50:.1f}, p99 {figures[-1].p99:.1f}"
                )
    return figures


def _latency(rig: Rig, provider: Provider, latency: Latency) -> Figure:
    rig.stream(latency)
    count = WARM_UP + LATENCY_ROUNDS * ROUND
    tenant = people(rig, f"latency-{latency}", count)
    committed: dict[str, float] = {}
    with everything(rig, provider, latency):
        with psycopg.connect(rig.stack.domain_dsn) as conn:
            began = time.perf_counter()
            for number in range(1, count + 1):
                time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
                committed[commit(conn, tenant, number)] = time.time()
        until(lambda: provider.count(tenant) >= count, "every message has arrived")
    received = provider.received(tenant)
    caused = causes(rig, tenant)
    waited = [1_000 * (received[caused[event]] - at) for event, at in committed.items()][WARM_UP:]
    rounds = [waited[start : start + ROUND] for start in range(0, len(waited), ROUND)]
    note = f"COMMIT's return → request read by the provider, {RATE} events/s; warm-up of {WARM_UP} dropped"
    return of_latencies("end_to_end_latency_ms", latency, "ms", rounds, note)


def _live(rig: Rig, provider: Provider, number: int) -> float:
    tenant = people(rig, f"live-{number}", EVENTS)
    with everything(rig, provider, "balanced"):
        began = time.time()
        _commit_all(rig, tenant)
        until(lambda: provider.count(tenant) >= EVENTS, "every message has arrived", every_s=0.25)
    took = max(provider.received(tenant).values()) - began
    _once(provider, tenant)
    rig.say(
        f"pipeline_rate {'round ' + str(number) if number else 'warm-up'}: {EVENTS / took:,.0f} deliveries/s"
    )
    return EVENTS / took


def _drain(rig: Rig, provider: Provider, number: int) -> float:
    tenant = people(rig, f"drain-{number}", EVENTS)
    before = rig.in_topic("events.loans")
    _commit_all(rig, tenant)
    until(lambda: rig.in_topic("events.loans") >= before + EVENTS, "the backlog is in Kafka")
    with everything(rig, provider, "balanced"):
        until(lambda: provider.count(tenant) >= EVENTS, "every message has arrived", every_s=0.25)
    received = provider.received(tenant).values()
    _once(provider, tenant)
    rate = EVENTS / (max(received) - min(received))
    rig.say(f"drain_rate round {number}: {rate:,.0f} deliveries/s")
    return rate


def _once(provider: Provider, tenant: str) -> None:
    count = provider.count(tenant)
    assert count == EVENTS, f"{count} messages for {EVENTS} events"


def people(rig: Rig, name: str, leads: int) -> str:
    """A tenant with so many leads, each with an applicant who can be told."""
    tenant = rig.tenant(name)
    rig.superuser.execute(_PEOPLE.encode(), {"tenant": tenant, "leads": leads, "prefix": "L-"})
    rig.superuser.execute("VACUUM (ANALYZE) platform.contact, platform.assignment")
    rig.superuser.execute("CHECKPOINT")
    return tenant


def commit(conn: psycopg.Connection[Any], tenant: str, number: int) -> str:
    """One immediate step in a transaction of its own; its event's id."""
    row = conn.execute(_APPEND, [tenant, f"L-{number}"]).fetchone()
    conn.commit()
    assert row is not None
    return str(row[0])


def _commit_all(rig: Rig, tenant: str) -> None:
    """All events, each its own transaction, on a few connections side by side."""

    def write(first: int) -> None:
        with psycopg.connect(rig.stack.domain_dsn) as conn:
            for number in range(first, EVENTS + 1, WRITERS):
                commit(conn, tenant, number)

    writers = [threading.Thread(target=write, args=(first,)) for first in range(1, WRITERS + 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def causes(rig: Rig, tenant: str) -> Mapping[str, str]:
    """The delivery that each event caused."""
    rows = rig.superuser.execute(
        "SELECT event_id::text, delivery_id::text FROM platform.delivery WHERE tenant_id = %s AND channel = 'whatsapp'",
        [tenant],
    ).fetchall()
    return dict(rows)


@contextmanager
def everything(
    rig: Rig,
    provider: Provider,
    latency: Latency,
    *,
    groups: Sequence[str] = GROUPS,
    topics: int = TOPICS,
    products: str = "",
) -> Iterator[None]:
    """Every process, assigned and warm; the `groups` read so many `topics` together."""
    settings = rig.settings(latency)
    environment = {
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_ACCOUNTS": str(provider.accounts),
        "TELLONCE_LATENCY": latency,
        "TELLONCE_PRODUCTS": products,
        "TELLONCE_METRICS_PORT": "0",
        "TELLONCE_LOG_LEVEL": "info",
    }
    log = rig.log("pipeline")
    log.write_bytes(b"")
    with log.open("ab") as output, Children(groups, environment, log=output) as children:
        until(lambda: _assigned(log) == PARTITIONS * topics, "every group has its partitions")
        yield
        assert children.ended() is None, log.read_text()[-2_000:]


def _assigned(log: Path) -> int:
    """Partitions that the processes have said they read."""
    return sum(int(count) for count in re.findall(r'"partitions": (\d+)', log.read_text()))


@contextmanager
def local_provider(
    rig: Rig, limits: str = f"in_flight = {IN_FLIGHT}\ntenant_share = 1.0"
) -> Iterator[Provider]:
    """The endpoint, with an account of these limits."""
    accounts = rig.stack.layout.logs / "accounts.toml"
    command = [sys.executable, "-m", "deploy.providers", "--accounts", str(accounts)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        accounts.write_text(accounts.read_text().replace("in_flight = 64", limits))
        yield Provider(url, accounts)
    finally:
        process.terminate()
        process.wait(WITHIN_S)
