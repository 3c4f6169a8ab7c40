"""The result, for machines and for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench import targets
from tests.bench.figures import Figure


def write(path: Path, figures: Sequence[Figure], machine: Mapping[str, Any], *, keep: bool = False) -> None:
    """`bench.json`, whole or not at all; each figure with the commit and time it is of.

    With `keep`, what the file has of other figures stays in it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    of = {"commit": machine["commit"], "measured_at": machine["measured_at"]}
    fresh = [figure.as_json() | of for figure in figures]
    measured = {(figure.name, figure.variant) for figure in figures}
    kept = [
        each for each in (_earlier(path) if keep else ()) if (each["name"], each["variant"]) not in measured
    ]
    text = json.dumps({"figures": kept + fresh, "machine": machine}, indent=2, ensure_ascii=False)
    beside = path.with_suffix(".new")
    beside.write_text(text + "\n")
    beside.replace(path)


def _earlier(path: Path) -> list[dict[str, Any]]:
    """The figures in the file; those from before each had its own commit have the file's."""
    if not path.is_file():
        return []
    found = json.loads(path.read_text())
    of = {key: found["machine"][key] for key in ("commit", "measured_at")}
    return [of | each for each in found["figures"]]


def show(console: Console, figures: Sequence[Figure], machine: Mapping[str, Any]) -> None:
    """A table, what misses its target first."""
    table = Table(title=_title(machine), title_justify="left")
    for heading in ("", "figure", "variant", "measured", "unit", "range", "target"):
        table.add_column(heading, justify="right" if heading in ("measured", "range") else "left")
    for figure in sorted(figures, key=_urgency):
        judged = targets.of(figure)
        table.add_row(
            _mark(figure),
            figure.name,
            figure.variant,
            _measured(figure),
            figure.unit,
            f"{_number(figure.min)} … {_number(figure.max)}",
            ", ".join(f"{target}{'' if met else ' missed'}" for target, met in judged),
        )
    console.print(table)


def _title(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['cores']} cores, {machine['memory_gib']} GiB, load {machine['load_at_start']} before"
        f" and {machine['load_at_end']} after; commit {str(machine['commit'])[:12]}"
    )


def _urgency(figure: Figure) -> int:
    """Missed, met, only reported."""
    judged = [met for _, met in targets.of(figure)]
    return (1 if all(judged) else 0) if judged else 2


def _mark(figure: Figure) -> str:
    return ("[red]✗[/red]", "[green]✓[/green]", "")[_urgency(figure)]


def _measured(figure: Figure) -> str:
    if figure.value is not None:
        return _number(figure.value)
    assert figure.p50 is not None
    assert figure.p99 is not None
    return f"p50 {_number(figure.p50)}, p99 {_number(figure.p99)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
