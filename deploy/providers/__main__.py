"""`python -m deploy.providers`: serve on this machine until Ctrl-C or SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

import orjson

from deploy.providers.running import LocalProviders, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.providers", description=__doc__)
    parser.add_argument("--http-port", type=int, default=0, help="0: a free one")
    parser.add_argument("--smtp-port", type=int, default=0, help="0: a free one")
    parser.add_argument("--accounts", type=Path, help="write the accounts file for TELLONCE_ACCOUNTS here")
    chosen = parser.parse_args()
    stop = threading.Event()
    for signalled in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signalled, lambda _number, _frame: stop.set())
    run(
        stop,
        accounts=chosen.accounts,
        http_port=chosen.http_port,
        smtp_port=chosen.smtp_port,
        ready=_say,
    )


def _say(providers: LocalProviders) -> None:
    """One line of JSON: where they are."""
    line = {"url": providers.url, "smtp_port": providers.smtp_port}
    sys.stdout.write(orjson.dumps(line).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
