"""`tellonce demo`: the article's storm on a stack of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.cli.options import LOCAL, examples

app = typer.Typer()


@app.command(rich_help_panel=LOCAL, epilog=examples("tellonce demo", "tellonce demo --leads 20"))
def demo(
    leads: Annotated[int, typer.Option(min=1, max=20_000, help="Per tenant.")] = 200,
    seed: Annotated[int, typer.Option(help="Another seed is another storm.")] = 1,
) -> None:
    """Two tenants, a storm of duplicate, late and concurrent events, a provider away, and the proof that it held.

    Starts a stack of its own in a folder of its own and removes both; a running one is left alone. Exit 1
    when a check fails.
    """
    from deploy.demo.story import run_demo  # here: it loads servers that no other command needs

    if code := run_demo(leads, seed=seed):
        raise typer.Exit(code)
