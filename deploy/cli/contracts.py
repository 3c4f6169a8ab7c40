"""`tellonce schemas …`: events' schemas against every version that was ever published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from connectors.registry import builtin_folders, check_schemas, product_folders, record_schemas
from deploy.cli import session
from deploy.cli.exits import Exit
from deploy.cli.options import Json, examples
from deploy.cli.output import answer, emit, say

app = typer.Typer(help="Events' schemas and their recorded history.")

Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR",
        help="Products' folders; without any, the built-in ones and TELLONCE_PRODUCTS.",
        show_default=False,
    ),
]


@app.command(epilog=examples("tellonce schemas check", "tellonce schemas check ./shop --json"))
def check(folders: Folders = None, json: Json = False) -> None:
    """Whether today's schemas read all of their history.

    And whether they are recorded as its newest version. Exit 1 if not.
    """
    problems = [problem for folder in _folders(folders) for problem in check_schemas(folder)]
    if json:
        emit({"valid": not problems, "problems": problems})
    for problem in problems if not json else ():
        answer(str(problem))
    if problems:
        raise typer.Exit(Exit.PROBLEMS)
    if not json:
        say("every schema is recorded and reads all of its history")


@app.command(epilog=examples("tellonce schemas record", "tellonce schemas record ./shop"))
def record(folders: Folders = None, json: Json = False) -> None:
    """Record new and changed schemas as versions.

    Before they are published. Refuses one that cannot read what an earlier version wrote.
    """
    written = [path for folder in _folders(folders) for path in record_schemas(folder)]
    if json:
        emit({"recorded": [str(path) for path in written]})
        return
    for path in written:
        answer(str(path))
    if not written:
        say("every schema is recorded already")


def _folders(given: list[Path] | None) -> list[Path]:
    if given:
        return product_folders(given)
    return [*builtin_folders(), *product_folders(session.settings().products)]
