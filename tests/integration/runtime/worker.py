"""A supersession process as the command line runs it, to be killed by tests."""

from __future__ import annotations

import signal
import sys
import threading

from connectors.logging import configure
from connectors.registry import load_catalogue
from connectors.settings import Settings
from consumers.runtime.errors import StopRunning
from consumers.runtime.process import run
from consumers.supersession.consumer import Supersession


def main(product: str) -> int:
    """Run until SIGTERM; the exit code is the process's own."""
    settings = Settings()
    configure("json", "info")
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    catalogue = load_catalogue(settings.products)
    loaded = catalogue.product(product)
    try:
        run(Supersession(loaded.product, loaded.events), catalogue, settings, stopping)
    except StopRunning as stop:
        sys.stderr.write(f"{stop}\n")
        return stop.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
