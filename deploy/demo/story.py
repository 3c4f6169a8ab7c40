"""`make demo`: one stack, two tenants, a storm of events, a provider away, and whether every promise was kept."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from deploy.demo import checks, messages, reached, report
from deploy.demo.checks import live, moving, undecided, unsent
from deploy.demo.outside import Outage, Outside, outside
from deploy.demo.people import enrol
from deploy.demo.processes import Running, running
from deploy.demo.replay import replay
from deploy.demo.sampler import QUERIES, Sampler
from deploy.demo.scope import Scope
from deploy.demo.storm import Blown, leads_of, planned, trickle, unleash
from deploy.demo.time import Time
from deploy.local.passwords import DOMAIN
from deploy.local.running import StackRunningError
from deploy.local.stack import Stack
from producers import tenants
from producers.products.loans.service import PRODUCT, install

ROOTS: Final = Path("build")
MOST_AT_ONCE: Final = 8
TENANTS: Final = ("north-bank", "south-bank")
SCOPE: Final = Scope(TENANTS, PRODUCT)
PROCESSES: Final = (SCOPE.group, *SCOPE.groups, "clock", "capture")
STORM_RATE: Final = 60.0
"""A minute a second: some reminders fall due while the events that supersede others are still coming."""
REST_RATE: Final = 40_000.0
"""The longest reminder waits for a day: two seconds."""
LOOK_EVERY_S: Final = 0.2
"""A look at every decision and delivery costs as much as some messages."""
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
    with (
        _own_stack(teller) as stack,
        outside(stack.layout.root) as providers,
        psycopg.connect(stack.owner_dsn, autocommit=True) as owner,
    ):
        admin = admin_client(stack.settings)
        teller.say("two tenants, their people, the loan service and the connector")
        register_products(owner, [PRODUCT])
        install(owner)
        for tenant in TENANTS:
            tenants.create(owner, tenant, roles=[DOMAIN])
        enrol(stack.domain_dsn, TENANTS, leads_of(leads))
        config = ConnectorConfig.from_settings(stack.settings)
        with ConnectClient(stack.connect_url) as connect:
            apply(connect, admin, config, topics_for([PRODUCT]))
        log = stack.layout.logs / "tellonce.log"
        with (
            psycopg.connect(stack.consumer_dsn, autocommit=True) as conn,
            running(stack.settings, PROCESSES, log, providers.accounts) as processes,
        ):
            teller.say(
                "supersession twice, rules, a delivery process per channel, the clock, capture's supervisor"
            )
            _until(
                lambda: _shared(admin),
                "the processes share the partitions",
                STREAMING_WITHIN_S,
                processes.check,
            )
            _await_streaming(stack, config, processes)
            clock = Time(owner)
            with Sampler(stack.consumer_dsn, TENANTS) as sampler:
                blown, outage = _storm(stack, providers, clock, leads, seed, teller, conn)
                teller.say("waiting for every decision, and until messages flow again")
                _until(
                    lambda: undecided(conn, SCOPE) == 0 and moving(conn, SCOPE) == 0,
                    "every record decided, messages flow",
                    DECIDED_WITHIN_S,
                    processes.check,
                )
                teller.say("and a few leads in calm weather, one event at a time")
                trickle(stack.domain_dsn, TENANTS)
                _settle(conn, processes, teller)
                teller.say("time runs until every reminder that still stands is due")
                clock.run(REST_RATE)
                _until(lambda: live(conn, SCOPE) == 0, "every nudge ended", DECIDED_WITHIN_S, processes.check)
                clock.run(1)
                _settle(conn, processes, teller)
            teller.say("deciding the whole topic again, serially and purely, to compare")
            replayed = replay(stack.settings, load_catalogue(), PRODUCT, TENANTS)
            said = messages.gather(conn, SCOPE, providers)
            held = [
                *checks.check(conn, SCOPE, replayed, sampler),
                *reached.check(conn, SCOPE, replayed, said, clock),
            ]
            return report.gather(conn, SCOPE, replayed, blown, outage, said, held, clock)


def _storm(
    stack: Stack,
    providers: Outside,
    clock: Time,
    leads: int,
    seed: int,
    teller: Teller,
    conn: psycopg.Connection[tuple[object, ...]],
) -> tuple[Blown, Outage]:
    """The events, with the outage in the middle, and what a capture that restarts would repeat of them."""
    teller.say(f"the storm: {leads} leads in each tenant, a minute a second, an outage in the middle")
    clock.run(STORM_RATE)
    over = threading.Event()
    with ThreadPoolExecutor(1, "outage") as beside:
        outage = beside.submit(providers.outage, over)
        try:
            blown = unleash(stack.domain_dsn, planned(TENANTS, leads, seed))
            teller.say("every seventh record once more, as a capture that restarts would send it")
            conn.execute(QUERIES["resend_some"], SCOPE.parameters)
        finally:
            over.set()
    return blown, outage.result()


def _settle(conn: psycopg.Connection[tuple[object, ...]], processes: Running, teller: Teller) -> None:
    """Until every record is decided and every delivery has been accepted or has ended."""
    teller.say("waiting for every decision and every provider's answer")
    _until(
        lambda: undecided(conn, SCOPE) == 0 and unsent(conn, SCOPE) == 0,
        "every record decided, every delivery ended",
        DECIDED_WITHIN_S,
        processes.check,
    )


def _await_streaming(stack: Stack, config: ConnectorConfig, processes: Running) -> None:
    """Until the connector reads from its slot: rows before that do not stream."""
    with (
        ConnectClient(stack.connect_url) as connect,
        psycopg.connect(stack.consumer_dsn, autocommit=True) as database,
    ):

        def streams() -> bool:
            slot = read_slot(database, config.slot)
            return slot is not None and slot.active and connect.status(config.name).is_streaming

        _until(streams, "the connector streams", STREAMING_WITHIN_S, processes.check)


def _shared(admin: AdminClient) -> bool:
    """Whether every process has its share: one that joins later makes partitions stand still for a moment."""
    described = admin.describe_consumer_groups(list(SCOPE.groups))
    for name, found in described.items():
        shares = [
            len(each.assignment.topic_partitions) if each.assignment else 0 for each in found.result().members
        ]
        topics = sum(group == name for group, _ in SCOPE.readers)
        if len(shares) != PROCESSES.count(name) or min(shares) == 0 or sum(shares) != topics * PARTITIONS:
            return False
    return True


def _until(
    holds: Callable[[], bool], what: str, within_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Wait for a condition with a deadline; `check` raises when waiting makes no sense any more."""
    deadline = time.monotonic() + within_s
    while not holds():
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(LOOK_EVERY_S)


@contextmanager
def _own_stack(teller: Teller) -> Iterator[Stack]:
    """A stack in a folder of its own, erased at the end; what a demo that was killed left behind goes first."""
    with _one_at_a_time(ROOTS):
        stack, root = _started(teller)
    try:
        with stack:
            try:
                yield stack
            except Exception:
                teller.console.print(
                    f"What the engines and processes said is in {stack.layout.logs}", highlight=False
                )
                raise
            teller.say("stopping the stack")
    except KeyboardInterrupt:
        Stack.erase(root)
        raise
    Stack.erase(root)


def _started(teller: Teller) -> tuple[Stack, Path]:
    for number in range(1, MOST_AT_ONCE + 1):
        root = ROOTS / f"demo-{number}"
        try:
            Stack.erase(root)
            return Stack.start(root, progress=teller.say), root
        except StackRunningError:
            continue
    raise StackRunningError(f"{MOST_AT_ONCE} demos are under way in {ROOTS}")


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Two demos that begin together must not both find the same place free."""
    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(held, fcntl.LOCK_UN)
        os.close(held)
