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


def write(path: Path, figures: Sequence[Figure], machine: Mapping[str, Any]) -> None:
    """`bench.json`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    found = {"figures": [figure.as_json() for figure in figures], "machine": machine}
    fresh.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    fresh.replace(path)


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
