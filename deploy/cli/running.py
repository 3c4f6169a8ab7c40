"""`tellonce run GROUP…`: one group in this process, several in a child each."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

import typer

from connectors import failpoints, tracing
from connectors import logging as logs
from deploy.cli import session
from deploy.cli.children import LOOK_EVERY_S, Children
from deploy.cli.exits import Exit
from deploy.cli.groups import groups
from deploy.cli.options import INSTALLATION, examples
from deploy.cli.output import say

app = typer.Typer()
_log = logs.get_logger(__name__)


@app.command(
    rich_help_panel=INSTALLATION,
    epilog=examples(
        "tellonce run supersession.loans",
        "tellonce run supersession.loans supersession.loans clock capture",
        "tellonce run --all",
    ),
)
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GROUP",
            help="supersession.<product>, rules.<product>, delivery.<channel>, clock or capture;"
            " one that comes twice runs twice.",
            show_default=False,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="One of every group.")] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Run consumer groups, the clock, capture's supervisor.

    Until Ctrl-C or SIGTERM; the batch in hand is finished.

    One group runs in this process, with health and metrics on TELLONCE_METRICS_PORT (0: a free one, logged).
    Several run in a process each, on consecutive ports; the first that ends stops the others, and its exit
    code is the command's.
    """
    chosen = session.settings()
    logs.configure(chosen.log_format, chosen.log_level)
    failpoints.arm(chosen.failpoints, chosen.failpoints_log)
    if armed := failpoints.armed():
        _log.warning("failpoints_armed", detail=f"this process is made to fail: {armed}")
    known = groups(session.catalogue())
    if all_ and names:
        raise typer.BadParameter("name groups, or --all; not both")
    wanted = list(known) if all_ else _checked(names or [], list(known))
    stop = threading.Event()
    for signalled in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signalled, lambda _number, _frame: stop.set())
    if with_parent:
        threading.Thread(target=_end_with_parent, args=(stop,), name="parent", daemon=True).start()
    if len(wanted) == 1:
        with tracing.exporting(wanted[0]):
            known[wanted[0]](chosen, stop)
    elif code := _beside_each_other(wanted, stop):
        raise typer.Exit(code)


def _checked(names: Sequence[str], known: Sequence[str]) -> list[str]:
    if not names:
        raise typer.BadParameter(f"name a group, or --all; there are {', '.join(known)}")
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise typer.BadParameter(f"no group {name!r}; {hint}")
    return list(names)


def _beside_each_other(names: Sequence[str], stop: threading.Event) -> int:
    """Until asked to stop, or until one ends by itself: its code, or 75 where it gave none.

    Asked to stop it is 0 only if all of them ended well: one may have failed between two looks, or while stopping.
    """
    with Children(names) as children:
        while not stop.wait(LOOK_EVERY_S):
            if first := children.ended():
                say(f"{first.group} ended with {first.exit_code}; stopping the others")
                return first.exit_code or Exit.TEMPORARY
    if failed := children.failed():
        say(f"{failed.group} ended with {failed.exit_code}")
        return failed.exit_code
    return Exit.OK


def _end_with_parent(stop: threading.Event) -> None:
    """Our parent holds the other end of stdin: when it is gone, stop."""
    # Unbuffered: a thread that holds the lock of sys.stdin when the interpreter ends aborts the process.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()
