"""A delivery process without Kafka: it finds what is due. For tests that kill or stop it.

TELLONCE_DATABASE_URL=… TELLONCE_FAILPOINTS=… python -m tests.integration.delivery.child ACCOUNTS
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from prometheus_client import CollectorRegistry

from connectors import failpoints, logging
from connectors.providers.accounts import load_accounts
from connectors.registry import load_catalogue
from connectors.settings import Settings
from consumers.delivery.process import working
from schemas.products.audience import Channel

LOOK_EVERY_S = 0.2


def main(accounts: Path) -> None:
    settings = Settings()
    logging.configure(settings.log_format, settings.log_level)
    failpoints.arm(settings.failpoints, settings.failpoints_log)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopping.set())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    with working(
        Channel.WHATSAPP, load_catalogue([]), load_accounts(accounts), settings, stopping, CollectorRegistry()
    ):
        # Not for ever: just after a SIGCONT the kernel may hand a SIGTERM to another thread, which wakes not this one.
        while not stopping.wait(LOOK_EVERY_S):
            pass


if __name__ == "__main__":
    main(Path(sys.argv[1]))
