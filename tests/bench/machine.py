"""Where the figures were measured: without it they say nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import confluent_kafka
import psutil

ROOT = Path(__file__).parents[2]
POM = ROOT / "deploy" / "local" / "pom.xml"


def describe() -> dict[str, Any]:
    """Cores, memory, versions, commit, and how busy the machine was before we began."""
    return {
        "cores": len(psutil.Process().cpu_affinity())
        if hasattr(psutil.Process, "cpu_affinity")
        else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": {
            "python": platform.python_version(),
            "psycopg": version("psycopg"),
            "confluent-kafka": version("confluent-kafka"),
            "librdkafka": confluent_kafka.libversion()[0],
            **_engines(),
        },
        "commit": _commit(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_at_start": load(),
    }


def load() -> float:
    """Processes that wanted to run, over the last minute."""
    return round(os.getloadavg()[0], 2)


def _engines() -> dict[str, str]:
    found = re.findall(r"<(postgres|kafka|debezium)\.version>([^<]+)<", POM.read_text())
    return {str(name): str(number) for name, number in found}


def _commit() -> str:
    """The commit, with a `+` when what was measured is not exactly that."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (git("rev-parse", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "-uno") else "")
