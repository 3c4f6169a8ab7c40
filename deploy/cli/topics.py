"""`tellonce topics`: those there should be, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from connectors.kafka.offsets import watermarks
from connectors.kafka.topics import topic_ids
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.options import INSTALLATION, Json, examples
from deploy.cli.output import emit, show, table

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic as it should be beside what was found; `partitions` is None when it does not exist."""

    topic: str
    should_have: int
    partitions: int | None
    retention_days: int
    records: int
    topic_id: str | None


@app.command(rich_help_panel=INSTALLATION, epilog=examples("tellonce topics", "tellonce topics --json"))
def topics(json: Json = False) -> None:
    """Every topic with its partitions and what it holds.

    Exit 1 when one is missing or has another partition count.
    """
    lines = _lines()
    if json:
        emit(lines)
    else:
        show(
            table(
                ("topic", "partitions", "records", "kept for", "id"),
                (
                    (each.topic, _count(each), each.records, f"{each.retention_days} d", each.topic_id)
                    for each in lines
                ),
            )
        )
    if any(each.partitions != each.should_have for each in lines):
        raise typer.Exit(Exit.PROBLEMS)


def _lines() -> list[TopicLine]:
    specs = session.topics()
    admin = session.kafka_admin()
    found = topic_ids(admin, [spec.name for spec in specs])
    marks = watermarks(admin, list(found))
    return [
        TopicLine(
            spec.name,
            spec.partitions,
            found[spec.name].partitions if spec.name in found else None,
            spec.retention.days,
            sum(mark.high - mark.low for (topic, _), mark in marks.items() if topic == spec.name),
            found[spec.name].topic_id if spec.name in found else None,
        )
        for spec in specs
    ]


def _count(line: TopicLine) -> str:
    if line.partitions is None:
        return "missing; `tellonce connector apply`"
    if line.partitions != line.should_have:
        return f"{line.partitions}, should have {line.should_have}"
    return str(line.partitions)
