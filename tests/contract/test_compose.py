"""docker-compose.yml against what it must agree with: the pinned versions, the settings, the command line.

Static: these tests read the files and start nothing, so they hold where no container engine answers. Where
the compose plugin is installed, `docker compose config` judges the file too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.settings import Settings

CLONE = Path(__file__).parents[2]
DOCKER = CLONE / "deploy" / "docker"
OURS = {"migrate", "connector", "supersession-loans", "rules-loans", "clock", "capture"}
ONCE = {"migrate", "connector"}
ENGINES = {"postgres", "kafka", "connect"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CLONE / "docker-compose.yml").read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    """The versions of the native stack's pom.xml."""
    namespace = "{http://maven.apache.org/POM/4.0.0}"
    properties = ET.parse(CLONE / "deploy" / "local" / "pom.xml").getroot().find(f"{namespace}properties")
    assert properties is not None
    return {each.tag.removeprefix(namespace): each.text or "" for each in properties}


def test_the_services_are_the_three_engines_and_ours(services: dict[str, dict[str, Any]]) -> None:
    assert set(services) == ENGINES | OURS


def test_engine_versions_are_those_of_the_native_stack(
    services: dict[str, dict[str, Any]], pinned: dict[str, str]
) -> None:
    assert services["postgres"]["image"] == "postgres:" + pinned["postgres.version"].removesuffix(".0")
    assert services["kafka"]["image"] == "apache/kafka:" + pinned["kafka.version"]
    assert services["connect"]["image"] == "quay.io/debezium/connect:" + pinned["debezium.version"]


def test_every_service_has_a_health_check_or_ends(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        if name in ONCE:
            assert service["healthcheck"] == {"disable": True}
            assert service["restart"] == "no"
        else:
            assert service["healthcheck"]["test"][0] == "CMD", name
            assert service["restart"] == "on-failure"


def test_ports_are_published_on_loopback_alone(services: dict[str, dict[str, Any]]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_every_dependency_exists_and_names_a_condition_it_can_meet(
    services: dict[str, dict[str, Any]],
) -> None:
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if needed in ONCE else "service_healthy"
            assert how["condition"] == expected, f"{name} needs {needed}"


def test_our_services_get_only_settings_that_exist(services: dict[str, dict[str, Any]]) -> None:
    known = {f"TELLONCE_{name.upper()}" for name in Settings.model_fields}
    for name in OURS:
        given = set(services[name]["environment"])
        assert given <= known, name
        assert ("TELLONCE_ADMIN_DATABASE_URL" in given) == (name in ONCE), "the owner is for set-up alone"
        assert ("TELLONCE_CONNECT_DATABASE_URL" in given) == (name in ONCE | {"capture"})


@pytest.mark.parametrize("service", sorted(OURS))
def test_the_command_of_each_service_of_ours_exists(
    services: dict[str, dict[str, Any]], service: str
) -> None:
    told = services[service]["command"]
    program = "from deploy.cli.main import run; run()"
    run = subprocess.run(
        [sys.executable, "-c", program, *told, "--help"],
        cwd=CLONE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_no_password_stands_in_the_file_and_make_env_makes_all_it_asks_for(tmp_path: Path) -> None:
    text = (CLONE / "docker-compose.yml").read_text()
    asked = set(re.findall(r"\$\{(TELLONCE_\w+_PASSWORD):\?", text))
    assert not re.search(r"PASSWORD: (?!\$\{)", text)
    script = tmp_path / "deploy" / "docker" / "make-env.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(DOCKER / "make-env.sh", script)
    for _ in range(2):  # the second time changes nothing
        subprocess.run(["/bin/sh", str(script)], check=True)
        made = dict(line.split("=") for line in (tmp_path / ".env").read_text().splitlines())
    assert set(made) == asked
    assert len(set(made.values())) == len(asked)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600


def test_the_mounted_files_exist(services: dict[str, dict[str, Any]]) -> None:
    mounts = [v.split(":")[0] for v in services["postgres"]["volumes"] if v.startswith("./")]
    assert mounts
    assert all((CLONE / path).is_file() for path in mounts)
    assert os.access(DOCKER / "logins.sh", os.X_OK), "the image sources, not runs, what is not executable"


def test_the_image_is_pinned_runs_without_root_and_copies_what_exists() -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    bases = {line.split()[1] for line in lines if line.startswith("FROM")}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", bases.pop())
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001"]
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((CLONE / source).exists() for source in line.split()[1:-1]), line


def test_the_image_installs_what_the_suite_was_run_with() -> None:
    tested, shipped = locked(CLONE / "requirements.lock"), locked(DOCKER / "runtime.lock")
    assert shipped.items() <= tested.items(), "make lock"
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[\[<>=; ]", need)[0] for need in project["dependencies"]}
    assert wanted <= shipped.keys(), "make lock"
    assert not shipped.keys() & {"pytest", "ruff", "mypy", "hypothesis"}


def locked(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", path.read_text(), re.MULTILINE))


def test_an_engine_accepts_the_file_where_there_is_one(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if (
        not docker
        or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode
    ):
        return  # nobody to ask: the other tests are all there is
    variables = dict.fromkeys(re.findall(r"\$\{(\w+):\?", (CLONE / "docker-compose.yml").read_text()), "x")
    run = subprocess.run(
        [docker, "compose", "--project-directory", str(CLONE), "config", "--quiet"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
