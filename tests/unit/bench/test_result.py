"""What `make bench` writes when it measured a part, or could not measure a part."""

from __future__ import annotations

import json
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.bench import __main__ as command
from tests.bench import report
from tests.bench.figures import Figure, of_rounds

FIRST = {"commit": "one", "measured_at": "2026-01-01T00:00:00+00:00"}
SECOND = {"commit": "two", "measured_at": "2026-02-01T00:00:00+00:00"}


def figure(name: str, value: float) -> Figure:
    return of_rounds(name, "all", "events/s", [value], 1)


def written(path: Path) -> dict[str, tuple[float, str, str]]:
    found = json.loads(path.read_text())["figures"]
    return {each["name"]: (each["value"], each["commit"], each["measured_at"]) for each in found}


def test_a_part_joins_what_was_measured_before(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    report.write(path, [figure("kept", 1), figure("renewed", 2)], FIRST)
    report.write(path, [figure("renewed", 3), figure("new", 4)], SECOND, keep=True)
    assert written(path) == {
        "kept": (1, *FIRST.values()),
        "renewed": (3, *SECOND.values()),
        "new": (4, *SECOND.values()),
    }
    assert json.loads(path.read_text())["machine"] == SECOND


def test_the_whole_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    report.write(path, [figure("gone", 1)], FIRST)
    report.write(path, [figure("new", 2)], SECOND)
    assert written(path) == {"new": (2, *SECOND.values())}


def test_figures_without_a_commit_have_that_of_their_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"figures": [figure("old", 1).as_json()], "machine": FIRST}))
    report.write(path, [figure("new", 2)], SECOND, keep=True)
    assert written(path)["old"] == (1, *FIRST.values())


class Family(ModuleType):
    def __init__(self, name: str, failure: Exception | None = None) -> None:
        super().__init__(f"tests.bench.{name}")
        self.NAMES = (name,)
        self.failure = failure

    def measure(self, _rig: object, _wanted: Collection[str]) -> list[Figure]:
        if self.failure:
            raise self.failure
        return [figure(self.NAMES[0], 5)]


class NoRig:
    @classmethod
    @contextmanager
    def open(cls, *_arguments: Any) -> Iterator[None]:
        yield None


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(command, "RESULT", tmp_path / "bench.json")
    monkeypatch.setattr(command, "Rig", NoRig)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return tmp_path / "bench.json"


def test_a_family_that_fails_is_named_and_the_others_are_written(
    result: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    families = (Family("before"), Family("broken", TimeoutError("not within 3 s")), Family("after"))
    monkeypatch.setattr(command, "FAMILIES", families)
    assert command.main([]) == 1
    assert set(written(result)) == {"before", "after"}
    said = capsys.readouterr().out
    assert "not within 3 s" in said
    assert said.rstrip().endswith("not measured, see above: broken")


def test_only_a_whole_run_forgets(result: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report.write(result, [figure("of_long_ago", 1)], FIRST)
    monkeypatch.setattr(command, "FAMILIES", (Family("a"), Family("b")))
    assert command.main(["b"]) == 0
    assert set(written(result)) == {"of_long_ago", "b"}
    assert command.main([]) == 0
    assert set(written(result)) == {"a", "b"}
