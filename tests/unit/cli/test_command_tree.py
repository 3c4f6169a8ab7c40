"""Every command of the tree: its help shows how it is typed, and what goes wrong ends in words and a code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from deploy.cli.exits import Exit
from deploy.cli.main import app, invoke

LISTING = {
    "status",
    "nudges",
    "why",
    "topics",
    "product list",
    "connector status",
    "tenant list",
    "dead-letter list",
    "dead-letter show",
    "clock show",
    "reconcile",
}


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by what is typed for it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path), command
        return
    for name, each in below.items():
        yield from leaves(each, (*path, name))


TREE = dict(leaves(get_command(app)))


@pytest.fixture(autouse=True)
def _nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stack and no settings, wherever the suite runs."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "DATABASE_URL",
        "ADMIN_DATABASE_URL",
        "CONNECT_DATABASE_URL",
        "KAFKA_BOOTSTRAP",
        "CONNECT_URL",
    ):
        monkeypatch.delenv(f"TELLONCE_{name}", raising=False)


@pytest.mark.parametrize("typed", sorted(TREE))
def test_help_says_what_it_does_and_has_an_example(typed: str) -> None:
    result = CliRunner().invoke(app, [*typed.split(), "--help"], env={"COLUMNS": "200"})

    assert result.exit_code == Exit.OK
    assert "Example" in result.stdout
    assert f"tellonce {typed}" in result.stdout
    assert TREE[typed].help


def test_whatever_lists_or_shows_has_json() -> None:
    for typed in LISTING:
        assert "--json" in {name for parameter in TREE[typed].params for name in parameter.opts}, typed


@pytest.mark.parametrize(
    "typed",
    [
        "migrate",
        "tenant list",
        "nudges",
        "why --tenant acme --subject L-1",
        "dead-letter list",
        "clock show",
        "connector pause",
    ],
)
def test_without_a_stack_it_says_how_to_get_one(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(typed.split())

    said = capsys.readouterr()
    assert code == Exit.CONFIGURATION
    assert said.out == ""
    assert "make up" in said.err
    assert "TELLONCE_" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("typed", ["nosuch", "why", "run no.such.group", "nudges --state asleep", "run"])
def test_a_command_line_that_is_none_is_a_usage_error(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(typed.split())

    said = capsys.readouterr()
    assert code == Exit.USAGE
    assert said.out == ""
    assert said.err


def test_a_database_that_does_not_answer_is_unavailable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELLONCE_DATABASE_URL", "postgresql://somebody:s3cret@127.0.0.1:1/tellonce")

    code = invoke(["nudges"])

    said = capsys.readouterr()
    assert code == Exit.UNAVAILABLE
    assert "TELLONCE_DATABASE_URL" in said.err
    assert "s3cret" not in said.err


def test_a_defect_shows_no_stack_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys.modules["deploy.cli.session"], "settings", _defect)

    code = invoke(["nudges"])

    said = capsys.readouterr()
    assert code == Exit.DEFECT
    assert "ZeroDivisionError" in said.err
    assert "Traceback" not in said.err


def _defect() -> None:
    raise ZeroDivisionError("division by zero")
