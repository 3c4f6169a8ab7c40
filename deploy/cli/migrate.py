"""`tellonce migrate`: the schema, the coming days' partitions, and the products that the outbox admits."""

from __future__ import annotations

import typer

from connectors.postgres import migrate as migrations
from deploy.cli import session
from deploy.cli.options import INSTALLATION, Json, examples
from deploy.cli.output import emit, say

app = typer.Typer()


@app.command(
    rich_help_panel=INSTALLATION,
    epilog=examples("tellonce migrate", "TELLONCE_PRODUCTS=./shop tellonce migrate"),
)
def migrate(json: Json = False) -> None:
    """Bring the schema up to date and register the products.

    Needs the owner's login. Again changes nothing; several at once are safe.
    """
    products = sorted(session.catalogue().products)
    with session.owner(migrating=True) as conn:
        applied = migrations.migrate(conn)
        registered = migrations.register_products(conn, products)
    if json:
        emit(
            {
                "version": len(migrations.known()),
                "applied": [f"{each.version:04}_{each.name}" for each in applied],
                "products": products,
                "registered": registered,
            }
        )
        return
    for each in applied:
        say(f"applied {each.version:04}_{each.name}")
    say(f"schema version {len(migrations.known())}; products: {', '.join(products)}")
