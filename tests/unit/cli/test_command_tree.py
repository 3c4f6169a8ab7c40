"""Every command of the tree: its help shows how it is typed, and what goes wrong ends in words and a code."""

from __future__ import annotations

import shlex
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
    "deliveries list",
    "deliveries show",
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
    result = CliRunner().invoke(app, [*shlex.split(typed), "--help"], env={"COLUMNS": "200"})

    assert result.exit_code == Exit.OK
    assert "Example" in result.stdout
    assert f"tellonce {typed}" in result.stdout
    assert "\n" not in TREE[typed].help.replace("\n\n", ""), "the terminal breaks lines, not the source"


def test_whatever_lists_or_shows_has_json() -> None:
    for typed in LISTING:
        assert "--json" in {name for parameter in TREE[typed].params for name in parameter.opts}, typed


DELIVERY = "0198f3a2-7c1e-8b54-9d3f-6a2b8c4d5e6f"
REACHES_OUT = {
    "migrate": "",
    "run": "clock",
    "topics": "",
    "reconcile": "",
    "import": shlex.quote(__file__)
    + " --tenant acme --product loans --subject s --time t --type loans.withdrawn --format csv",
    "status": "",
    "nudges": "",
    "why": "--tenant acme --subject L-1",
    "connector apply": "",
    "connector status": "",
    "connector pause": "",
    "connector resume": "",
    "connector restart": "",
    "tenant create": "acme",
    "tenant list": "",
    "tenant suspend": "acme",
    "tenant resume": "acme",
    "tenant hold": "acme",
    "tenant release": "acme",
    "tenant grant": "acme loans_service",
    "tenant revoke": "acme loans_service",
    "clock show": "",
    "clock set": "--real",
    "deliveries list": "",
    "deliveries show": DELIVERY,
    "deliveries retry": DELIVERY,
    "deliveries cancel": DELIVERY,
    "dead-letter list": "",
    "dead-letter show": "1",
    "dead-letter retry": "1",
    "dead-letter discard": "1 --note misspelt",
}
"""What needs an installation, with what is typed behind it."""
NEEDS_NOTHING = {
    "up",
    "down",
    "reset",
    "demo",
    "product check",
    "product list",
    "schemas check",
    "schemas record",
}
AWAY = {
    "TELLONCE_DATABASE_URL": "postgresql://somebody:s3cret@127.0.0.1:1/tellonce",
    "TELLONCE_ADMIN_DATABASE_URL": "postgresql://somebody:s3cret@127.0.0.1:1/tellonce",
    "TELLONCE_CONNECT_DATABASE_URL": "postgresql://somebody:s3cret@127.0.0.1:1/tellonce",
    "TELLONCE_KAFKA_BOOTSTRAP": "127.0.0.1:1",
    "TELLONCE_CONNECT_URL": "http://127.0.0.1:1",
}


def test_every_command_is_known_to_need_an_installation_or_not() -> None:
    assert set(TREE) == REACHES_OUT.keys() | NEEDS_NOTHING


@pytest.mark.parametrize(
    "typed",
    [
        *(f"{command} {rest}" for command, rest in REACHES_OUT.items() if command != "status"),
        "run supersession.loans",
        "run capture",
    ],
)
def test_without_a_stack_it_says_how_to_get_one(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(shlex.split(typed))

    said = capsys.readouterr()
    assert code == Exit.CONFIGURATION
    assert said.out == ""
    assert "make up" in said.err
    assert "TELLONCE_" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "typed",
    [
        "nosuch",
        "why",
        "run no.such.group",
        "run",
        "run clock --all",
        "nudges --state asleep",
        "deliveries --state asleep",
        "deliveries --channel pigeon",
        "deliveries show",
        "deliveries show 7",
        "deliveries retry",
        f"deliveries retry {DELIVERY} 7",
        "deliveries cancel whatever",
        "deliveries no-such-verb",
    ],
)
def test_a_command_line_that_is_none_is_a_usage_error(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(shlex.split(typed))

    said = capsys.readouterr()
    assert code == Exit.USAGE
    assert said.out == ""
    assert said.err


@pytest.mark.parametrize("typed", ["deliveries", "deliveries --json --tenant acme", "deliveries list"])
def test_deliveries_alone_lists_them(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(shlex.split(typed)) == Exit.CONFIGURATION
    assert "TELLONCE_DATABASE_URL" in capsys.readouterr().err


def test_changing_deliveries_is_the_owner_s(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("retry", "cancel"):
        invoke(["deliveries", verb, DELIVERY])
        assert "TELLONCE_ADMIN_DATABASE_URL" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_deliveries_shows_what_can_be_done_with_them(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["deliveries", option]) == Exit.OK
    said = capsys.readouterr().out
    for verb in ("list", "show", "retry", "cancel"):
        assert verb in said


@pytest.mark.parametrize(
    "typed",
    # A group waits for better weather; the broker costs each of these the time that a person waits for it.
    [f"{command} {rest}" for command, rest in REACHES_OUT.items() if command not in ("run", "status")],
)
def test_what_does_not_answer_is_unavailable(
    typed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["deploy.cli.session"], "BROKER_ANSWERS_WITHIN_S", 0.2)
    for name, address in AWAY.items():
        monkeypatch.setenv(name, address)

    code = invoke(shlex.split(typed))

    said = capsys.readouterr()
    assert code == Exit.UNAVAILABLE
    assert said.out == ""
    assert "TELLONCE_" in said.err
    assert "s3cret" not in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("form", ["", " --json"])
def test_status_ends_as_any_other_command_would_and_still_shows_what_it_can(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = invoke(f"status{form}".split())
    said = capsys.readouterr()
    assert code == Exit.CONFIGURATION
    assert "make up" in said.out

    for name, address in AWAY.items():
        monkeypatch.setenv(name, address)
    code = invoke(f"status{form}".split())
    said = capsys.readouterr()
    assert code == Exit.UNAVAILABLE
    assert "TELLONCE_DATABASE_URL" in said.out
    assert "s3cret" not in said.out + said.err


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
