"""`python -m tests.bench.peers [w3,w1,w2,peer…]`: what is built on job queues, and ours, one after the other.

The peers lie beside the project (`TELLONCE_PEERS`, else `../shared/peers`) with a harness of their own: they are copied
below build/, set up there once, and measured one run each; then ours. A peer that fails is said and left out.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from deploy.local import jars
from deploy.local.errors import StackError
from tests.bench import machine, pipeline, real_job, report
from tests.bench.figures import Figure, of_rounds
from tests.bench.machine import ROOT
from tests.bench.rig import Rig, root_of_stack
from tests.integration.runtime import event_log

SOURCE: Final = Path(os.environ.get("TELLONCE_PEERS") or ROOT.parent / "shared" / "peers").resolve()
HOME: Final = ROOT / "build" / "peers"
RESULT: Final = ROOT / "build" / "bench-peers.json"
WITHIN_S: Final = 240
"""For one run of one peer, the setting up of its database included."""
NOT_COPIED: Final = ("run", "venv", "node_modules", "__pycache__")
THEIRS: Final[dict[str, tuple[str, ...]]] = {
    "w3": ("outbox", "pgqueuer"),
    "w1": ("outbox-100ms", "pgqueuer", "procrastinate"),
    "w2": ("outbox-100ms", "pgqueuer", "procrastinate"),
}
"""Those that need no more than Postgres and Python packages. The first delivers most; it alone when none is named."""
OURS: Final[dict[str, tuple[ModuleType, str]]] = {
    "w3": (real_job, "real_job_rate"),
    "w1": (pipeline, "pipeline_rate"),
    "w2": (pipeline, "end_to_end_latency_ms"),
}


class CannotRunError(Exception):
    """What is missing, in words for whoever runs this."""


def main(arguments: Sequence[str]) -> int:
    """The real job, w3, of the peer that delivers most when nothing is named; 1 when one side failed, 2 when it
    cannot be run here.
    """
    console = Console()
    named = [name for argument in arguments for name in argument.split(",") if name]
    works = [name for name in named if name in OURS] or ["w3"]
    peers = {work: [name for name in THEIRS[work] if name in named] or THEIRS[work][:1] for work in works}
    known = {*OURS, *(peer for some in THEIRS.values() for peer in some)}
    if unknown := set(named) - known:
        console.print(f"no {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}", style="red")
        return 2
    try:
        environment = _set_up(console)
    except (CannotRunError, StackError) as missing:
        console.print(
            f"the peers cannot be measured: {missing}", style="red", highlight=False, soft_wrap=True
        )
        return 2
    # As Ctrl-C does: what runs is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    where = machine.describe()
    with _postgres_of_theirs(environment):
        theirs = [figure for work in works for figure in _theirs(console, environment, work, peers[work])]
    where["load_at_end"] = machine.load()
    report.write(RESULT, theirs, where)
    ours: list[Figure] = []
    try:
        with Rig.open(root_of_stack(), lambda line: console.print(line, highlight=False)) as rig:
            for family in dict.fromkeys(OURS[work][0] for work in works):
                ours += family.measure(rig, [OURS[work][1] for work in works])
    except Exception as error:  # noqa: BLE001 theirs are worth showing all the same
        console.print(f"ours failed: {type(error).__name__}: {error}", style="red", highlight=False)
    where["load_at_end"] = machine.load()
    report.write(RESULT, ours + theirs, where)
    _show(console, ours, theirs)
    return 0 if ours and theirs else 1


def _set_up(console: Console) -> dict[str, str]:
    """The peers below build/ with their packages; the environment that their harness runs in."""
    if not (SOURCE / "bench_w3.py").is_file():
        raise CannotRunError(f"there is no {SOURCE}; TELLONCE_PEERS names the folder that holds them")
    if not event_log.REAL.is_file():
        raise CannotRunError(f"there is no {event_log.REAL}")
    # Their harness starts a cluster of its own: with the server that ours has.
    binaries = os.environ.get("PG_BIN") or str(jars.ensure(console.print).postgres / "bin")
    shutil.rmtree(HOME / "run", ignore_errors=True)
    shutil.copytree(SOURCE, HOME, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    wanted = (HOME / "requirements.txt").read_text()
    ready = HOME / "venv" / ".ready"
    if not ready.is_file() or ready.read_text() != wanted:
        console.print("setting up the peers' packages, once")
        _run([sys.executable, "-m", "venv", "venv"])
        _run(["venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"])
        ready.write_text(wanted)
    return {**os.environ, "PG_BIN": binaries, "W3_LOG": str(event_log.REAL)}


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRunError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-1_000:]}")


@contextmanager
def _postgres_of_theirs(environment: dict[str, str]) -> Iterator[None]:
    """The harness leaves its cluster running; afterwards it is stopped."""
    try:
        yield
    finally:
        data = HOME / "run" / "pg"
        if (data / "postmaster.pid").is_file():
            as_whom = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
            stop = [f"{environment['PG_BIN']}/pg_ctl", "-D", str(data), "-m", "fast", "stop"]
            subprocess.run([*as_whom, *stop], cwd="/", stdout=subprocess.DEVNULL, check=False)


def _theirs(
    console: Console, environment: dict[str, str], work: str, peers: Sequence[str]
) -> Iterator[Figure]:
    for peer in peers:
        console.print(f"{work}: {peer}", highlight=False)
        runs = _measured(environment, work, peer)
        if not runs:
            console.print(f"{peer} was not measured; its logs are in {HOME / 'run'}", style="red")
        for run in runs:
            found = _real_job(run) if work == "w3" else _plain(run)
            for figure in found:
                yield figure
                shown = figure.value if figure.value is not None else figure.p50
                console.print(f"{figure.name} {figure.variant}: {shown:,.0f} {figure.unit}", highlight=False)


def _measured(environment: dict[str, str], work: str, peer: str) -> list[dict[str, Any]]:
    """One run of each mode, as the harness says it; what it could not do is not among them."""
    out = HOME / "run" / f"beside-{work}-{peer}.jsonl"
    out.unlink(missing_ok=True)
    script = ["bench_w3.py", peer] if work == "w3" else ["bench.py", peer, "--work", work]
    modes = ["drain", "live"] if work == "w3" else [""]
    for mode in modes:
        command = ["venv/bin/python", *script, "--runs", "1", "--out", str(out)]
        command += ["--modes", mode] if mode else []
        process = subprocess.Popen(command, cwd=HOME, env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:  # it stops its workers when told to
                process.terminate()
                process.wait(30)
    return [json.loads(line) for line in out.read_text().splitlines()] if out.is_file() else []


def _real_job(run: dict[str, Any]) -> Iterator[Figure]:
    variant = "decide_live" if run["mode"] == "live" else "decide"
    counts = run["counts"]
    note = (
        f"dropped {counts.get('dropped', 0):,}, cancelled {counts['cancelled']:,}, live {counts['live']:,};"
        f" order of a lead's events: {run['order']}"
    )
    yield _theirs_of(run, "real_job_rate", variant, "events/s", run["per_s"], run["n"], note)
    if told := run.get("p2"):
        note = f"missing {told['missing']}, duplicates {told['duplicates']}"
        yield _theirs_of(run, "real_job_rate", "deliver", "messages/s", told["per_s"], told["want"], note)


def _plain(run: dict[str, Any]) -> Iterator[Figure]:
    note = f"missing {run['missing']}, duplicates {run['duplicates']}"
    if run["work"] == "w1":
        yield _theirs_of(run, "pipeline_rate", "live", "deliveries/s", run["per_s"], run["n"], note)
    else:
        variant, low, high = f"balanced, {run['peer']}", float(run["p50"]), float(run["max"])
        yield Figure(
            "end_to_end_latency_ms",
            variant,
            "ms",
            1,
            run["n"],
            low,
            high,
            None,
            low,
            float(run["p95"]),
            float(run["p99"]),
            note,
        )


def _theirs_of(
    run: dict[str, Any], name: str, variant: str, unit: str, value: float, samples: int, note: str
) -> Figure:
    return of_rounds(name, f"{variant}, {run['peer']}", unit, [float(value)], int(samples), note)


def _show(console: Console, ours: Sequence[Figure], theirs: Sequence[Figure]) -> None:
    table = Table("figure", "variant", "peer", "peer's", "ours", "unit", "ours / peer's")
    for figure in theirs:
        variant, peer = figure.variant.split(", ")
        same = [mine for mine in ours if (mine.name, mine.variant) == (figure.name, variant)]
        its, mine = _middle(figure), _middle(same[0]) if same else None
        ratio = f"{mine / its:.2f}" if mine is not None else ""
        shown = f"{mine:,.1f}" if mine is not None else "not measured"
        table.add_row(figure.name, variant, peer, f"{its:,.1f}", shown, figure.unit, ratio)
    console.print(table)


def _middle(figure: Figure) -> float:
    found = figure.value if figure.value is not None else figure.p50
    assert found is not None
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
