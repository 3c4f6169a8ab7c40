"""One process of the demo: a supersession group, the clock or the capture supervisor, until SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading

from connectors.debezium.watch import CaptureProcess
from connectors.logging import configure
from connectors.registry import load_catalogue
from connectors.settings import Settings
from consumers.runtime.errors import StopRunning
from consumers.runtime.process import run
from consumers.supersession.consumer import Supersession
from producers.clock.run import ClockProcess


def main(name: str) -> int:
    """Run `clock`, `capture` or `supersession.<product>`; returns the exit code."""
    settings = Settings()
    configure("json", "info")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        match name.partition("."):
            case ("clock", _, _):
                ClockProcess(settings, stop=stopping).run()
            case ("capture", _, _):
                CaptureProcess(settings, stop=stopping).run()
            case (_, _, product):
                catalogue = load_catalogue(settings.products)
                run(Supersession(catalogue.product(product).product), catalogue, settings, stopping)
    except StopRunning as stop:
        sys.stderr.write(f"{stop}\n")
        return stop.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
