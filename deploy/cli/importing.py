"""`tellonce import`: an event log, into a tenant's outbox."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from connectors import tracing
from deploy.cli import session
from deploy.cli.options import INSTALLATION, Json, examples, pairs
from deploy.cli.output import emit, progress, say
from producers.importer.pace import Pace
from producers.importer.run import import_log
from producers.importer.spec import ImportSpec, type_map

app = typer.Typer()


@app.command(
    "import",
    rich_help_panel=INSTALLATION,
    epilog=examples(
        "tellonce import log.csv --tenant acme --product loans --subject case --time start"
        " --type-column activity --type-map 'A=loans.initiated,B=loans.phone_verified' --field applicant_id=user",
        "tellonce import withdrawn.jsonl --tenant acme --product loans --subject lead --time at"
        " --type loans.withdrawn --field applicant_id=user --rate 500",
    ),
)
def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with a header, or JSON lines.")],
    tenant: Annotated[str, typer.Option(help="Hold it first, and nothing becomes due.", show_default=False)],
    product: Annotated[str, typer.Option(help="Whose events these are.", show_default=False)],
    subject: Annotated[str, typer.Option(help="The column that names the subject.", show_default=False)],
    time: Annotated[str, typer.Option(help="The column that says when.", show_default=False)],
    type_column: Annotated[str | None, typer.Option(help="The column that says what happened.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Or: every row is of this event type.")] = None,
    type_map_: Annotated[str, typer.Option("--type-map", help="VALUE=EVENT.TYPE,… of the type column.")] = "",
    field: Annotated[list[str] | None, typer.Option(help="PAYLOAD_FIELD=COLUMN; may come again.")] = None,
    time_format: Annotated[str, typer.Option(help="iso, epoch, epoch_ms or a strptime pattern.")] = "iso",
    zone: Annotated[str, typer.Option(help="Of times that name none, such as Europe/Berlin.")] = "UTC",
    id_: Annotated[str, typer.Option("--id", help="The import's name; the file's without it.")] = "",
    format_: Annotated[
        Literal["csv", "jsonl"] | None, typer.Option("--format", help="Where the ending does not tell.")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.1, help="Events per second at most.")] = None,
    json: Json = False,
) -> None:
    """Import an event log into a tenant.

    In time order and resumable; the same log again changes nothing. All of it is checked before anything is
    written.
    """
    spec = ImportSpec(
        path=path,
        tenant=tenant,
        product=product,
        subject_column=subject,
        time_column=time,
        type_column=type_column,
        event_type=type_,
        type_map=type_map(type_map_),
        fields=pairs(field or [], "--field"),
        time_format=time_format,
        zone=_zone(zone),
        import_id=id_,
        log_format=format_,
    )
    contracts = session.catalogue().product(product).events
    with (
        tracing.exporting("import"),
        session.owner() as conn,
        progress(f"importing {path.name}") as told,
    ):
        result = import_log(conn, spec, contracts, progress=told, pace=Pace(rate))
    if json:
        emit(result)
        return
    say(
        f"{result.imported:,} of {result.rows:,} events imported into {result.tenant} as {result.import_id!r}"
        f" in {result.seconds:.1f} s" + (f"; {result.already:,} were there" if result.already else "")
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise typer.BadParameter(f"{name!r} is no time zone; write one such as Europe/Berlin") from None
