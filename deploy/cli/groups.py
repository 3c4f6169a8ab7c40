"""What `tellonce run` can run, by name: each a function that works until it is asked to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from connectors.debezium.watch import CaptureProcess
from connectors.kafka.topics import CHANNELS
from connectors.settings import Settings
from consumers.rules.consumer import Rules
from consumers.runtime import process
from consumers.supersession.consumer import Supersession
from deploy.cli import session
from deploy.cli.failures import NotConfigured
from producers.clock.run import ClockProcess
from schemas.products.audience import Channel
from schemas.products.catalogue import Catalogue, LoadedProduct

Work = Callable[[Settings, threading.Event], None]
"""Returns when the event is set; raises `StopRunning` with an exit code when it must end for another reason, and
`NotConfigured` at once without the settings it cannot do without: no weather brings those.
"""


def groups(catalogue: Catalogue) -> Mapping[str, Work]:
    """Every group of this installation: `supersession.<product>` and `rules.<product>` for each product,
    `delivery.<channel>` for each channel, the clock, and capture's supervisor.
    """
    products = sorted(catalogue.products.items())
    supersession = {f"supersession.{name}": _supersession(loaded, catalogue) for name, loaded in products}
    rules = {f"rules.{name}": _rules(loaded, catalogue) for name, loaded in products}
    delivery = {f"delivery.{channel}": _delivery(Channel(channel), catalogue) for channel in CHANNELS}
    return {**supersession, **rules, **delivery, "clock": _clock, "capture": _capture}


def _supersession(loaded: LoadedProduct, catalogue: Catalogue) -> Work:
    def work(settings: Settings, stop: threading.Event) -> None:
        _needs(settings, "database_url", "kafka_bootstrap")
        process.run(Supersession(loaded.product, loaded.events), catalogue, settings, stop)

    return work


def _rules(loaded: LoadedProduct, catalogue: Catalogue) -> Work:
    def work(settings: Settings, stop: threading.Event) -> None:
        _needs(settings, "database_url", "kafka_bootstrap")
        process.run(Rules(loaded.product), catalogue, settings, stop)

    return work


def _delivery(channel: Channel, catalogue: Catalogue) -> Work:
    def work(settings: Settings, stop: threading.Event) -> None:
        # Here: clients of providers and a template engine, which cost every other command a second.
        from connectors.providers.accounts import AccountsError, load_accounts
        from consumers.delivery.process import run as deliver

        _needs(settings, "database_url", "kafka_bootstrap")
        try:
            accounts = load_accounts(settings.accounts)
        except AccountsError as error:
            raise NotConfigured(str(error)) from error
        deliver(channel, catalogue, accounts, settings, stop)

    return work


def _clock(settings: Settings, stop: threading.Event) -> None:
    _needs(settings, "database_url", "kafka_bootstrap")
    ClockProcess(settings, stop=stop).run()


def _capture(settings: Settings, stop: threading.Event) -> None:
    _needs(settings, "database_url", "connect_url")
    CaptureProcess(settings, stop=stop).run()


def _needs(settings: Settings, *fields: str) -> None:
    for field in fields:
        session.required(settings, field)
