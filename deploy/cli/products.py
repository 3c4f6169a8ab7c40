"""`tellonce product …`: the folders that say what a product is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from connectors.registry import check_product
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.options import Json, examples
from deploy.cli.output import answer, emit, say, show, table
from schemas.durations import format_duration
from schemas.products.catalogue import LoadedProduct

app = typer.Typer(help="Products: journeys, kinds and contracts, one folder each.")


@app.command(
    epilog=examples("tellonce product check schemas/products/loans", "tellonce product check ./shop --json")
)
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The product's folder.", show_default=False)],
    json: Json = False,
) -> None:
    """Everything that is wrong with a product's folder.

    With file and line. Exit 1 if anything is.
    """
    problems = check_product(folder)
    if json:
        emit({"folder": str(folder), "valid": not problems, "problems": problems})
    for problem in problems if not json else ():
        answer(str(problem))
    if problems:
        raise typer.Exit(Exit.PROBLEMS)
    if not json:
        say(f"{folder} is valid")


@app.command(
    "list", epilog=examples("tellonce product list", "tellonce product list --json | jq '.[].journey'")
)
def list_(json: Json = False) -> None:
    """The products of this installation: those that come with it and those of TELLONCE_PRODUCTS."""
    products = [found for _, found in sorted(session.catalogue().products.items())]
    if json:
        emit([_as_json(each) for each in products])
        return
    show(
        table(
            ("product", "subject", "events", "kinds", "journey"),
            (
                (each.name, each.product.subject, len(each.events), len(each.product.kinds), _journey(each))
                for each in products
            ),
        )
    )


def _as_json(loaded: LoadedProduct) -> dict[str, object]:
    journey = loaded.product.journey
    return {
        "product": loaded.name,
        "subject": loaded.product.subject,
        "events": {name: loaded.product.role_of(name) for name in sorted(loaded.events)},
        "kinds": sorted(loaded.product.kinds),
        "journey": [
            {
                "step": step.on,
                "nudge": step.nudge,
                "after": format_duration(step.after),
                "retired": step.retired,
            }
            for step in (journey.steps if journey else ())
        ],
    }


def _journey(loaded: LoadedProduct) -> str:
    steps = loaded.product.journey.steps if loaded.product.journey else ()
    return " → ".join(step.on.partition(".")[2] for step in steps if not step.retired)
