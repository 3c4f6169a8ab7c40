"""What Kafka and Kafka Connect have in common: how a Java program of the cache is run in a folder of its own.

All paths the two programs read are relative to that folder, because Kafka splits some at commas, Java splits
others at colons, and log4j reads them as URLs: a clone can be anywhere.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from deploy.local.errors import StackError
from deploy.local.jars import Engines
from deploy.local.process import Launch

LOGGING = Path(__file__).with_name("log4j2.xml")

OPTIONS = (
    "-server",
    "-XX:+UseSerialGC",
    "-Xms256m",
    "-Xmx768m",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)
"""The serial collector starts fastest and keeps its threads off the few cores that everything shares."""

ARCHIVING_S = 45.0
"""What writing the archive may take on top of a stop, on two busy cores."""


def java() -> str:
    """The Java to run: JAVA_HOME's, else the PATH's."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None) or shutil.which("java")
    if found is None:
        raise StackError(
            "Java 17 or newer is needed: install it (Debian: apt-get install openjdk-17-jre-headless)"
        )
    return found


def lay_out(folder: Path, engines: Engines, properties: str) -> None:
    """Put into `folder` what the program reads there: its properties, the jars by links, the logging."""
    (folder / "run.properties").write_text(properties)
    shutil.copyfile(LOGGING, folder / "log4j2.xml")
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    (folder / "tmp").mkdir()
    for name, target in (("libs", engines.kafka), ("plugins", engines.debezium.parent)):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)


def command(folder: Path, main: str, *arguments: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The command line of one Java program, to be run in `folder`."""
    log = f"-Dtellonce.log=../logs/{folder.name}.log"
    extra = (f"-Djava.io.tmpdir={folder / 'tmp'}", "-Dlog4j2.configurationFile=log4j2.xml", log)
    return (java(), *OPTIONS, *options, *extra, "-cp", "libs/*", main, *arguments)


def environment() -> dict[str, str]:
    """Nothing of the caller's Java, Kafka or Connect variables."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def launch(folder: Path, main: str, engines: Engines, out: Path, grace_s: float) -> Launch:
    """How to run the program until it is stopped.

    The first run on a machine writes, as it ends, an archive of the classes it loaded; later ones start from
    that in little more than half the time. Java checks that it is whole and fits the jars and itself.
    """
    options, leaves = from_archive(folder, engines), None
    if not options:
        archive = _archive(folder, engines)
        writer = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        written = archive.with_suffix(f".{writer}")  # in the archive's own folder, so that a move is atomic
        options, leaves = (f"-XX:ArchiveClassesAtExit={written}", "-Xlog:cds=off"), (written, archive)
    return Launch(
        argv=command(folder, main, "run.properties", options=options),
        cwd=folder,
        environment=environment(),
        out=out,
        stop_signal=signal.SIGTERM,
        grace_s=grace_s + (ARCHIVING_S if leaves else 0.0),
        leaves=leaves,
    )


def from_archive(folder: Path, engines: Engines) -> tuple[str, ...]:
    """The options to start from the archive of an earlier run; none if there is none."""
    archive = _archive(folder, engines)
    return (f"-XX:SharedArchiveFile={archive}", "-XX:+VerifySharedSpaces") if archive.exists() else ()


def _archive(folder: Path, engines: Engines) -> Path:
    """One for each program and each Java that has run it."""
    binary = Path(java()).resolve()
    modules = binary.parents[1] / "lib" / "modules"
    stat = (modules if modules.exists() else binary).stat()
    java_digest = hashlib.sha256(f"{binary} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:12]
    return engines.archives / f"{folder.name}-{java_digest}.jsa"
