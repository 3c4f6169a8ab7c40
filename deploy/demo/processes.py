"""The platform's processes as children of this one: what `tellonce run` starts, on a given stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from connectors.settings import Settings
from deploy.cli.children import Children
from deploy.local.errors import StackError
from deploy.local.waiting import tail


class ProcessEndedError(StackError):
    """A process ended that should run on; the message has the end of the log."""


class Running:
    """The processes while they run."""

    def __init__(self, children: Children, log: Path) -> None:
        self._children = children
        self._log = log

    def check(self) -> None:
        """Raise `ProcessEndedError` if one has ended."""
        if (ended := self._children.ended()) is not None:
            raise ProcessEndedError(
                f"{ended.group} ended with exit code {ended.exit_code}:\n{tail(self._log)}"
            )


@contextmanager
def running(
    settings: Settings, names: Sequence[str], log: Path, accounts: Path | None = None
) -> Iterator[Running]:
    """Run `names` (a group, `clock` or `capture`; twice is two processes) inside the `with`; they log to `log`.

    `accounts` is the file of those at providers; without it only in-app messages go out.
    """
    with log.open("ab") as output, Children(names, _environment(settings, accounts), log=output) as children:
        yield Running(children, log)


def _environment(settings: Settings, accounts: Path | None) -> dict[str, str]:
    """The stack's addresses, and everything that ours may set differently at its default."""
    return {
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_ADMIN_DATABASE_URL": settings.admin_database_url.get_secret_value(),
        "TELLONCE_CONNECT_DATABASE_URL": settings.connect_database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_KAFKA_OPTIONS": "{}",
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_PRODUCTS": "",
        "TELLONCE_LINK_BASE": "",
        "TELLONCE_ACCOUNTS": "" if accounts is None else str(accounts.resolve()),
        "TELLONCE_METRICS_PORT": "0",
        "TELLONCE_LOG_FORMAT": "json",
        "TELLONCE_LOG_LEVEL": "info",
    }
