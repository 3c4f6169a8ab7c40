"""What is said, where, and that what others wrote cannot steer a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest

from deploy.cli.output import answer, cell, complain, emit, moment, progress, say, show, table

AT = datetime(2026, 12, 1, 10, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=1)))


@dataclass(frozen=True, slots=True)
class Thing:
    """A row as commands show it."""

    name: str
    at: datetime
    body: bytes
    took: timedelta


def test_json_is_plain_data_with_instants_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Thing("a", AT, b"{}", timedelta(seconds=2)), {"raw": b"\xff", "of": frozenset({"b", "a"})}])

    thing, more = orjson.loads(capsys.readouterr().out)

    assert datetime.fromisoformat(thing["at"]) == AT
    assert (thing["name"], thing["body"], thing["took"]) == ("a", "{}", 2.0)
    assert more == {"raw": "base64:/w==", "of": ["a", "b"]}


def test_results_and_messages_go_different_ways(capsys: pytest.CaptureFixture[str]) -> None:
    say("done")
    complain("broken")
    answer("42")

    said = capsys.readouterr()

    assert said.out == "42\n"
    assert said.err == "done\ntellonce: broken\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (12_345, "12,345"),
        ((), "-"),
        (["a", "b"], "a, b"),
        (AT, "2026-12-01T09:00:00Z"),
    ],
)
def test_a_cell_for_people(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_an_instant_that_is_not_there_is_a_dash() -> None:
    assert moment(None) == "-"
    assert moment(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00Z"


def test_what_others_wrote_is_neither_markup_nor_control(capsys: pytest.CaptureFixture[str]) -> None:
    show(table(("subject",), [("[red]L-1[/]\x1b[2J",)]))
    answer("\x1b[2J[bold]")

    out = capsys.readouterr().out

    assert "[red]L-1[/]" in out
    assert "[bold]" in out
    assert "\x1b" not in out


def test_a_pipe_gets_a_long_line_whole(capsys: pytest.CaptureFixture[str]) -> None:
    answer("x" * 500)

    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_a_progress_bar_says_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("importing") as told:
        told(1, 2)

    assert capsys.readouterr().out == ""
