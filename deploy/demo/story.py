"""`make demo`: one stack, two tenants, a storm of events, and whether everything promised was kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.status import Status

from connectors.debezium.apply import apply
from connectors.debezium.client import ConnectClient
from connectors.debezium.config import ConnectorConfig
from connectors.debezium.slot import read_slot
from connectors.kafka.clients import admin_client
from connectors.kafka.topics import PARTITIONS, topics_for
from connectors.postgres.migrate import register_products
from connectors.registry import load_catalogue
from deploy.demo import report
from deploy.demo.checks import Scope, check, undecided
from deploy.demo.processes import running
from deploy.demo.replay import replay
from deploy.demo.sampler import QUERIES, Sampler
from deploy.demo.storm import planned, trickle, unleash
from deploy.local.passwords import DOMAIN
from deploy.local.running import StackRunningError
from deploy.local.stack import Stack
from producers import tenants
from producers.products.loans.service import PRODUCT, install

ROOTS: Final = Path("build")
MOST_AT_ONCE: Final = 8
TENANTS: Final = ("north-bank", "south-bank")
PROCESSES: Final = (f"supersession.{PRODUCT}", f"supersession.{PRODUCT}", "clock", "capture")
STREAMING_WITHIN_S: Final = 60.0
DECIDED_WITHIN_S: Final = 120.0
"""A hundred times what a small machine needs: past this something is stuck, not slow."""


@dataclass(frozen=True, slots=True)
class Teller:
    """Says what is being done while it is done, and nothing about it afterwards."""

    console: Console
    status: Status

    def say(self, line: str) -> None:
        """A spinner where there is a terminal, a plain line elsewhere."""
        if self.console.is_terminal:
            self.status.update(line)
        else:
            self.console.print(f"  {line} …", highlight=False)


def run_demo(leads: int = 200, console: Console | None = None, *, seed: int = 1) -> int:
    """Tell the story with `leads` leads per tenant; the exit code, 1 when a promise was not kept.

    Uses nothing of a stack that runs already and leaves nothing behind, unless it fails: then the logs stay.
    Raises StackError, also for a process that ended, and TimeoutError when something did not happen in time.
    """
    console = console or Console()
    began = time.monotonic()
    with console.status("starting") as status:
        told = _tell(leads, seed, Teller(console, status))
    report.show(console, told, time.monotonic() - began)
    return 0 if all(each.held for each in told.checks) else 1


def _tell(leads: int, seed: int, teller: Teller) -> report.Told:
    with _own_stack(teller) as stack:
        scope = Scope(TENANTS, PRODUCT)
        settings = stack.settings
        admin = admin_client(settings)
        teller.say("two tenants, the loan service and the connector")
        with psycopg.connect(stack.owner_dsn, autocommit=True) as owner:
            register_products(owner, [PRODUCT])
            install(owner)
            for tenant in TENANTS:
                tenants.create(owner, tenant, roles=[DOMAIN])
        _stream(stack, admin)
        with (
            psycopg.connect(stack.consumer_dsn, autocommit=True) as conn,
            running(settings, PROCESSES, stack.layout.logs / "tellonce.log") as processes,
        ):
            teller.say("two supersession processes, the clock and the capture supervisor")
            _until(
                lambda: _shared(admin, scope),
                "the two processes share the partitions",
                STREAMING_WITHIN_S,
                processes.check,
            )
            with Sampler(stack.consumer_dsn, TENANTS) as sampler:
                teller.say(f"the storm: {leads} leads in each tenant")
                blown = unleash(stack.domain_dsn, planned(TENANTS, leads, seed))
                teller.say("every seventh record once more, as a capture that restarts would send it")
                conn.execute(QUERIES["resend_some"], scope.parameters)
                teller.say("waiting for a decision on every event")
                _until(
                    lambda: undecided(conn, scope) == 0,
                    "every event decided",
                    DECIDED_WITHIN_S,
                    processes.check,
                )
                teller.say("and a few leads in calm weather, one event at a time")
                trickle(stack.domain_dsn, TENANTS)
                _until(
                    lambda: undecided(conn, scope) == 0,
                    "every event decided",
                    DECIDED_WITHIN_S,
                    processes.check,
                )
                teller.say("deciding the whole topic again, serially and purely, to compare")
                replayed = replay(settings, load_catalogue(), PRODUCT, TENANTS)
            checks = check(conn, scope, replayed, sampler)
            return report.gather(conn, scope, replayed, blown, checks)


def _stream(stack: Stack, admin: AdminClient) -> None:
    """Topics and connector; returns once the connector reads from its slot: rows before that do not stream."""
    config = ConnectorConfig.from_settings(stack.settings)
    with (
        ConnectClient(stack.connect_url) as connect,
        psycopg.connect(stack.consumer_dsn, autocommit=True) as database,
    ):
        apply(connect, admin, config, topics_for([PRODUCT]))

        def streams() -> bool:
            slot = read_slot(database, config.slot)
            return slot is not None and slot.active and connect.status(config.name).is_streaming

        _until(streams, "the connector streams", STREAMING_WITHIN_S)


def _shared(admin: AdminClient, scope: Scope) -> bool:
    """Whether every process has its share: one that joins later makes partitions stand still for a moment."""
    group = admin.describe_consumer_groups([scope.group])[scope.group].result()
    shares = [len(member.assignment.topic_partitions) if member.assignment else 0 for member in group.members]
    return len(shares) == PROCESSES.count(scope.group) and min(shares) > 0 and sum(shares) == PARTITIONS


def _until(
    holds: Callable[[], bool], what: str, within_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Wait for a condition with a deadline; `check` raises when waiting makes no sense any more."""
    deadline = time.monotonic() + within_s
    while not holds():
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(0.05)


@contextmanager
def _own_stack(teller: Teller) -> Iterator[Stack]:
    """A stack in a folder of its own, erased at the end; what a demo that was killed left behind goes first."""
    for number in range(1, MOST_AT_ONCE + 1):
        root = ROOTS / f"demo-{number}"
        try:
            Stack.erase(root)
            stack = Stack.start(root, progress=teller.say)
        except StackRunningError:
            continue
        break
    else:
        raise StackRunningError(f"{MOST_AT_ONCE} demos are under way in {ROOTS}")
    with stack:
        try:
            yield stack
        except Exception:
            teller.console.print(
                f"What the engines and processes said is in {stack.layout.logs}", highlight=False
            )
            raise
        teller.say("stopping the stack")
    Stack.erase(root)
