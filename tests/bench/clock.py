"""A clock process, for measuring what it costs to have one."""

from __future__ import annotations

import signal
import threading

from connectors.logging import configure
from connectors.settings import Settings
from producers.clock.run import ClockProcess


def main() -> None:
    """Run until SIGTERM."""
    configure("json", "info")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    ClockProcess(Settings(), stop=stop).run()


if __name__ == "__main__":
    main()
