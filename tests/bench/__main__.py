"""`python -m tests.bench [figure,figure…]`: measure, write `build/bench.json`, show a table."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from types import ModuleType

from rich.console import Console

from tests.bench import (
    capture,
    fairness,
    growth,
    idle,
    machine,
    pipeline,
    real_job,
    report,
    supersession,
    timers,
)
from tests.bench.figures import Figure
from tests.bench.machine import ROOT
from tests.bench.rig import Rig, root_of_stack

FAMILIES: Sequence[ModuleType] = (capture, supersession, timers, pipeline, real_job, fairness, growth, idle)
WIDTH = 130
"""A table that breaks its names cannot be read; a log file says it is 80 wide."""
RESULT = ROOT / "build" / "bench.json"


def main(arguments: Sequence[str]) -> int:
    """All figures, or those that are named, which join the others in the file; 1 when a family failed, 2 when a name
    is unknown.
    """
    console = Console()
    console.width = max(console.width, WIDTH)
    known = [name for family in FAMILIES for name in family.NAMES]
    wanted = [name for argument in arguments for name in argument.split(",") if name] or known
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            console.print(f"no figure {name!r}; {hint}There are: {', '.join(known)}", style="red")
            return 2
    # As Ctrl-C does: the stack and the processes on it are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    where = machine.describe()
    figures: list[Figure] = []
    failed: list[str] = []
    with Rig.open(root_of_stack(), lambda line: console.print(line, highlight=False)) as rig:
        for family in FAMILIES:
            if set(family.NAMES).isdisjoint(wanted):
                continue
            try:
                figures += family.measure(rig, wanted)
            except Exception:  # noqa: BLE001 the others are worth having; this one is named again at the end
                console.print_exception()
                failed.append(family.__name__.rpartition(".")[2])
            where["load_at_end"] = machine.load()
            report.write(RESULT, figures, where, keep=True)
    if wanted == known and not failed:
        report.write(RESULT, figures, where)
    report.show(console, figures, where)
    if failed:
        console.print(f"not measured, see above: {', '.join(failed)}", style="red")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
