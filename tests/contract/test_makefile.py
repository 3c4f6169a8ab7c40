"""The commands a person types: each is explained, and continuous integration runs one of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

CLONE = Path(__file__).parents[2]
TARGETS = {
    *("help", "setup", "up", "down", "reset", "demo", "test", "check"),
    *("bench", "bench-peers", "proof", "lock"),
}


def make(*arguments: str, cwd: Path = CLONE) -> subprocess.CompletedProcess[str]:
    found = shutil.which("make")
    assert found
    # `make test` runs these tests: without its own flags and level, the inner make is a person's.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    return subprocess.run(
        [found, *arguments], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )


def test_every_target_is_explained() -> None:
    listed = set(re.findall(r"^  make ([\w-]+) +\S", make().stdout, re.MULTILINE))
    assert listed == TARGETS


def test_every_command_sets_up_what_it_needs(tmp_path: Path) -> None:
    """In a clone without `.venv`, each would begin with the preflight; spaces in its path do not matter."""
    clone = tmp_path / "a fresh clone"
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(CLONE / name, clone)
    for target in TARGETS - {"help"}:
        planned = make("--dry-run", target, cwd=clone)
        assert planned.returncode == 0, planned.stderr
        assert "deploy/local/preflight.sh" in planned.stdout.splitlines()[0], target


def test_a_failing_check_shows_what_it_says_and_a_passing_one_nothing(tmp_path: Path) -> None:
    rule = next(line for line in (CLONE / "Makefile").read_text().splitlines() if line.startswith("quietly"))
    noisy, failing = "echo noise", "sh -c 'echo reason >&2; exit 1'"
    (tmp_path / "Makefile").write_text(
        f"{rule}\ngood:\n\t@$(call quietly,{noisy})\nbad:\n\t@$(call quietly,{failing})\n"
    )
    assert make("good", cwd=tmp_path).stdout == ""
    failed = make("bad", cwd=tmp_path)
    assert failed.returncode != 0
    assert "reason" in failed.stdout


def test_continuous_integration_runs_make_test() -> None:
    script = CLONE / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "exec make test\n" in script.read_text()
