"""`tellonce`: the composition root. One module per family of commands; this puts them together.

`run` is what the installed script calls, and the only place where an error ends a process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from connectors import logging as logs
from deploy.cli import (
    clock,
    connector,
    contracts,
    dead_letters,
    deliveries,
    demo,
    importing,
    migrate,
    nudges,
    products,
    reconcile,
    running,
    session,
    stack,
    status,
    tenants,
    topics,
    why,
)
from deploy.cli.exits import EPILOG, Exit
from deploy.cli.failures import explain
from deploy.cli.options import INSTALLATION, LOOKING, flowing
from deploy.cli.output import complain

app = typer.Typer(
    name="tellonce",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main() -> None:
    """Tell each person once, and only what still matters."""
    if "TELLONCE_LOG_LEVEL" not in os.environ:
        logs.configure("console", "warning")  # a command's result is not drowned; `run` sets up its own
        return
    chosen = session.settings()
    logs.configure(chosen.log_format, chosen.log_level)


for single in (stack, demo, migrate, running, topics, reconcile, importing, status, nudges, why):
    app.add_typer(flowing(single.app))
for family, named, panel in (
    (products.app, "product", INSTALLATION),
    (contracts.app, "schemas", INSTALLATION),
    (connector.app, "connector", INSTALLATION),
    (tenants.app, "tenant", INSTALLATION),
    (clock.app, "clock", INSTALLATION),
    (deliveries.app, "deliveries", LOOKING),
    (dead_letters.app, "dead-letter", LOOKING),
):
    app.add_typer(flowing(family), name=named, rich_help_panel=panel, no_args_is_help=True)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; whatever is raised ends here, in words."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="tellonce")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else Exit.OK if ended.code is None else Exit.PROBLEMS
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 the one boundary
        failure = explain(error)
        complain(failure.message)
        return failure.exit_code
    return Exit.OK


def run() -> NoReturn:
    """The installed command."""
    sys.exit(int(invoke()))
