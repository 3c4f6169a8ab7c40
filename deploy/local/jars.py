"""The engines: fetched once by Maven, checked against `jars.lock`, cached for all clones of this user."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.local.account import cache_home
from deploy.local.errors import StackError

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
LOCK = HERE / "jars.lock"

POSTGRES_JAR = "embedded-postgres-binaries-"
PLUGIN_JARS = (
    "debezium-",
    "postgresql-",
    "protobuf-java-",
    "sketches-java-",
    "jackson-datatype-jsr310-",
    "checker-qual-",
)
"""What only Debezium needs. With Connect's own jars beside it, those classes would be loaded twice."""

PLATFORMS = {
    ("Linux", "x86_64"): "linux-amd64",
    ("Linux", "aarch64"): "linux-arm64v8",
    ("Darwin", "x86_64"): "darwin-amd64",
    ("Darwin", "arm64"): "darwin-arm64v8",
}

FETCH_TIMEOUT_S = 900
"""Seventy megabytes over a slow line, with Maven's own retries."""


class EnginesError(StackError):
    """The engines could not be fetched, or are not what `jars.lock` says."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Folders of what runs: `kafka` and `debezium` hold jars, `postgres` holds bin, lib and share."""

    home: Path

    @property
    def kafka(self) -> Path:
        return self.home / "kafka"

    @property
    def debezium(self) -> Path:
        return self.home / "plugins" / "debezium"

    @property
    def archives(self) -> Path:
        """What Java programs leave for their next start; not part of what was fetched."""
        return self.home / "archives"

    @property
    def postgres(self) -> Path:
        return self.home / "postgres"


def ensure(progress: Callable[[str], None]) -> Engines:
    """The engines of the pinned versions, from the cache if they are there whole, else fetched.

    Any number of processes may ask at once: one fetches, the others wait. Raises EnginesError.
    """
    pinned = hashlib.sha256(POM.read_bytes() + LOCK.read_bytes() + _platform().encode()).hexdigest()[:16]
    home = cache_home() / pinned
    if _is_whole(home):
        return Engines(home)
    try:
        with _locked(home.with_suffix(".lock")):
            if not _is_whole(home):
                progress("fetching PostgreSQL, Kafka and Debezium (once; about 70 MB)")
                shutil.rmtree(home, ignore_errors=True)
                _build(home)
    except PermissionError as error:
        advice = "name another folder in TELLONCE_CACHE"
        raise EnginesError(f"the cache of engines cannot be written ({error}): {advice}") from error
    return Engines(home)


def fetch(target: Path, postgres_platform: str) -> None:
    """All jars of the pom for one platform, by Maven, which checks each against its repository's checksum."""
    maven = shutil.which("mvn")
    if maven is None:
        raise EnginesError(
            "Maven is needed once, to fetch the engines: install `mvn` (Debian: apt-get install maven)"
        )
    goal = [
        "dependency:copy-dependencies",
        f"-DoutputDirectory={target}",
        f"-Dpostgres.platform={postgres_platform}",
    ]
    run = subprocess.run(
        [maven, "-q", "-B", "-C", "-f", str(POM), *goal],
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if run.returncode != 0:
        said = "\n".join((run.stdout + run.stderr).strip().splitlines()[-15:])
        raise EnginesError(f"Maven could not fetch what {POM} pins:\n{said}")


def lock() -> None:
    """Write `jars.lock` anew from what Maven resolves for every platform. For `make lock`."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(set(PLATFORMS.values())):
            fetch(Path(folder), name)
        for jar in Path(folder).iterdir():
            found[jar.name] = _sha256(jar)
    LOCK.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(found.items())))


def _platform() -> str:
    here = (platform.system(), platform.machine())
    if here not in PLATFORMS:
        raise EnginesError(f"there are no PostgreSQL binaries for {' '.join(here)}: use docker compose")
    return PLATFORMS[here]


def _build(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".new-") as folder:
        new = Path(folder) / "engines"
        kafka, debezium = new / "kafka", new / "plugins" / "debezium"
        debezium.mkdir(parents=True)
        (new / "archives").mkdir()
        fetch(kafka, _platform())
        _check_against_lock(kafka)
        for jar in sorted(kafka.iterdir()):
            if jar.name.startswith(POSTGRES_JAR):
                _unpack_postgres(jar, new / "postgres")
                jar.unlink()
            elif jar.name.startswith(PLUGIN_JARS):
                jar.rename(debezium / jar.name)
        _make_readable(new)
        (new / "manifest.json").write_text(json.dumps(_manifest(new)))
        (new / "manifest.json").chmod(0o644)
        new.rename(home)


def _check_against_lock(jars: Path) -> None:
    expected = _locked_jars()
    present = {jar.name: _sha256(jar) for jar in jars.iterdir()}
    wrong = [name for name, digest in present.items() if expected.get(name) != digest]
    missing = [n for n in expected if n not in present and not n.startswith(POSTGRES_JAR)]
    if wrong or missing:
        raise EnginesError(
            f"Maven did not resolve what {LOCK.name} says"
            f" (differs: {sorted(wrong)}, missing: {sorted(missing)}); if pom.xml was changed: make lock"
        )


def _locked_jars() -> dict[str, str]:
    lines = (line.split() for line in LOCK.read_text().splitlines())
    return {name: digest for digest, name in lines}


def _unpack_postgres(jar: Path, target: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".txz"))
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tree:
            tree.extractall(target, filter="data")


def _make_readable(home: Path) -> None:
    """Whatever the umask: PostgreSQL may run as another user than the one who fetched it."""
    home.chmod(0o755)
    for path in home.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def _manifest(home: Path) -> dict[str, str]:
    fetched = (path for part in ("kafka", "plugins", "postgres") for path in (home / part).rglob("*"))
    files = sorted(path for path in fetched if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(home)): _sha256(path) for path in files}


def _is_whole(home: Path) -> bool:
    """Every file is as it was when the folder was made: read in full, in about a tenth of a second."""
    try:
        recorded: dict[str, str] = json.loads((home / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return False
    return bool(recorded) and recorded == _manifest(home)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    lock()
    sys.exit(0)
