"""A delivery process: the runtime's loop, a worker with a connection of its own, and a sender."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry

from connectors.logging import get_logger
from connectors.providers.accounts import Accounts
from connectors.providers.adapters import adapter_for
from connectors.settings import Settings
from consumers.delivery.claim import Claimer
from consumers.delivery.consumer import Delivery
from consumers.delivery.desks import Desk, Desks
from consumers.delivery.metrics import DeliveryMetrics
from consumers.delivery.sender import Sender
from consumers.delivery.worker import Mailbox, Worker
from consumers.runtime import process
from consumers.runtime.database import Database
from schemas.products.audience import Channel
from schemas.products.catalogue import Catalogue

_log = get_logger(__name__)


def run(
    channel: Channel, catalogue: Catalogue, accounts: Accounts, settings: Settings, stopping: threading.Event
) -> None:
    """Deliver on a channel until `stopping` is set; calls under way are finished and recorded.

    Raises `StopRunning` as the runtime does. Any number of processes may run the same channel.
    """
    registry = CollectorRegistry()
    with working(channel, catalogue, accounts, settings, stopping, registry) as mailbox:
        process.run(
            Delivery(channel),
            catalogue,
            settings,
            stopping,
            lambda taken: mailbox.announce(taken.keys),
            registry,
        )


@contextmanager
def working(
    channel: Channel,
    catalogue: Catalogue,
    accounts: Accounts,
    settings: Settings,
    stopping: threading.Event,
    registry: CollectorRegistry,
) -> Iterator[Mailbox]:
    """A worker and a sender in threads of their own; the mailbox tells them what was announced, and what is due they
    find without it.

    Leaving sets `stopping`, waits until each answer is recorded, and raises what the worker failed with; a worker that
    fails sets it too.
    """
    mailbox = Mailbox()
    desks = Desks(
        [
            Desk(account, adapter_for(account))
            for account in accounts.by_name.values()
            if account.channel == channel
        ],
        _account_name(accounts, channel),
    )
    database = Database(
        settings.database_url.get_secret_value(), f"tellonce-delivery-{channel}", stopping.is_set
    )
    with Sender(desks.adapters, mailbox.answer) as sender:
        worker = Worker(
            Claimer(channel, catalogue, settings.link_base),
            channel,
            database,
            mailbox,
            sender.submit,
            desks,
            DeliveryMetrics(registry, channel),
            stopping.is_set,
        )
        failure: list[BaseException] = []
        thread = threading.Thread(
            target=_guarded, args=(worker.run, failure, stopping), name="worker", daemon=True
        )
        thread.start()
        try:
            yield mailbox
        finally:
            stopping.set()
            mailbox.ring()
            thread.join()
            database.close()
    if failure:
        raise failure[0]


def _guarded(work: Callable[[], None], failure: list[BaseException], stopping: threading.Event) -> None:
    """A worker that ends takes the process with it: a loop that only takes announcements helps nobody."""
    try:
        work()
    except BaseException as error:  # noqa: BLE001 raised again in the process's own thread
        failure.append(error)
        stopping.set()


def _account_name(accounts: Accounts, channel: Channel) -> Callable[[str], str | None]:
    def of_tenant(tenant_id: str) -> str | None:
        account = accounts.choose(channel.value, tenant_id)
        return None if account is None else account.name

    return of_tenant
