"""What Kafka and Kafka Connect have in common: how a Java program of the cache is run in a folder of its own.

All paths the two programs read are relative to that folder, because Kafka splits some at commas, Java splits
others at colons, and log4j reads them as URLs: a clone can be anywhere.
"""

from __future__ import annotations

import os
import shutil
import signal
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


def command(folder: Path, main: str, *arguments: str) -> tuple[str, ...]:
    """The command line of one Java program, to be run in `folder`."""
    log = f"-Dtellonce.log=../logs/{folder.name}.log"
    extra = (f"-Djava.io.tmpdir={folder / 'tmp'}", "-Dlog4j2.configurationFile=log4j2.xml", log)
    return (java(), *OPTIONS, *extra, "-cp", "libs/*", main, *arguments)


def environment() -> dict[str, str]:
    """Nothing of the caller's Java, Kafka or Connect variables."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def launch(folder: Path, main: str, out: Path, grace_s: float) -> Launch:
    """How to run the program until it is stopped."""
    return Launch(
        argv=command(folder, main, "run.properties"),
        cwd=folder,
        environment=environment(),
        out=out,
        stop_signal=signal.SIGTERM,
        grace_s=grace_s,
    )
