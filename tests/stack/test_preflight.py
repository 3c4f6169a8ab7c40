"""`preflight.sh` on machines that lack something: a PATH with nothing but what each test puts there."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).parents[2] / "deploy" / "local" / "preflight.sh"
SHELL = "/bin/sh"

GOOD_PYTHON = "exit 0"
OLD_PYTHON = "exit 1"
PYTHON_WITHOUT_VENV = 'case "$2" in *venv*) exit 1 ;; esac'
GOOD_JAVA = "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2"
NEW_JAVA = "echo 'openjdk version \"25\" 2025-09-16' >&2"
OLD_JAVA = "echo 'java version \"1.8.0_402\"' >&2"


@dataclass
class Machine:
    """A folder of programs: all the machine there is."""

    bin: Path
    environment: dict[str, str] = field(default_factory=dict)

    def has(self, name: str, script: str = "exit 0") -> Machine:
        program = self.bin / name
        program.write_text(f"#!{SHELL}\n{script}\n")
        program.chmod(0o755)
        return self

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SHELL, str(PREFLIGHT)],
            env={"PATH": str(self.bin), "HOME": str(self.bin), **self.environment},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A user's machine with nothing on it, and an empty cache of engines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return Machine(folder, {"TELLONCE_CACHE": str(tmp_path / "cache")}).has("id", "echo 1000")


def test_a_machine_with_everything(machine: Machine) -> None:
    run = machine.has("python3", GOOD_PYTHON).has("java", GOOD_JAVA).has("mvn").run()
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.strip() == str(machine.bin / "python3")


def test_a_machine_with_nothing_is_told_everything_at_once(machine: Machine) -> None:
    run = machine.run()
    assert run.returncode == 1
    assert run.stdout == ""
    for needed in ("Python 3.11 or newer with venv", "Java 17 or newer", "Maven 3.8 or newer"):
        assert f"  - {needed}\n" in run.stderr
    assert "sudo apt-get install python3 python3-venv default-jre-headless maven\n" in run.stderr


@pytest.mark.parametrize("python", [OLD_PYTHON, PYTHON_WITHOUT_VENV])
def test_a_python_that_will_not_do(machine: Machine, python: str) -> None:
    run = machine.has("python3", python).has("java", GOOD_JAVA).has("mvn").run()
    assert run.returncode == 1
    assert "Python 3.11 or newer with venv" in run.stderr
    assert "Java" not in run.stderr


def test_a_newer_python_beside_an_old_one_is_taken(machine: Machine) -> None:
    run = (
        machine.has("python3", OLD_PYTHON)
        .has("python3.12", GOOD_PYTHON)
        .has("java", NEW_JAVA)
        .has("mvn")
        .run()
    )
    assert run.stdout.strip() == str(machine.bin / "python3.12")


@pytest.mark.parametrize("java", [OLD_JAVA, "exit 1", "echo 'no version here'"])
def test_a_java_that_will_not_do(machine: Machine, java: str) -> None:
    run = machine.has("python3", GOOD_PYTHON).has("java", java).has("mvn").run()
    assert run.returncode == 1
    assert run.stderr.splitlines()[1:2] == ["  - Java 17 or newer"]


def test_java_home_comes_before_the_path(machine: Machine, tmp_path: Path) -> None:
    home = tmp_path / "a jdk"
    (home / "bin").mkdir(parents=True)
    Machine(home / "bin").has("java", GOOD_JAVA)
    machine.environment["JAVA_HOME"] = str(home)
    assert machine.has("python3", GOOD_PYTHON).has("java", OLD_JAVA).has("mvn").run().returncode == 0


def test_maven_is_not_needed_once_the_engines_are_cached(machine: Machine) -> None:
    engines = Path(machine.environment["TELLONCE_CACHE"]) / "0123456789abcdef"
    engines.mkdir(parents=True)
    (engines / "manifest.json").touch()
    assert machine.has("python3", GOOD_PYTHON).has("java", GOOD_JAVA).run().returncode == 0


def test_root_on_debian_gets_what_is_missing(machine: Machine) -> None:
    asked = machine.bin / "asked"
    install_maven = f'printf "#!{SHELL}\\n" > "{machine.bin}/mvn"; /bin/chmod +x "{machine.bin}/mvn"'
    apt = f'echo "$@" >> "{asked}"; case "$*" in *install*) {install_maven} ;; esac'
    run = (
        machine.has("id", "echo 0")
        .has("python3", GOOD_PYTHON)
        .has("java", GOOD_JAVA)
        .has("apt-get", apt)
        .run()
    )
    assert (run.returncode, run.stderr) == (0, "installing maven (apt-get)\n")
    assert asked.read_text().splitlines() == ["-qq update", "-qq -y --no-install-recommends install maven"]


def test_root_is_shown_why_an_installation_failed(machine: Machine) -> None:
    run = machine.has("id", "echo 0").has("apt-get", "echo 'E: no network' >&2; exit 100").run()
    assert run.returncode == 1
    assert "E: no network" in run.stderr
    assert "Missing on this machine" in run.stderr
