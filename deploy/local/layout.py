"""Where a stack keeps what: every path below its root, and who may look."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.local.account import postgres_home


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of the stack at `root` (`.local` for `make up`)."""

    root: Path

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def kafka(self) -> Path:
        return self.root / "kafka"

    @property
    def connect(self) -> Path:
        return self.root / "connect"

    @property
    def postgres(self) -> Path:
        """Outside the root when run by root: see `account.postgres_home`."""
        return postgres_home(self.root)

    @property
    def passwords(self) -> Path:
        return self.root / "secrets.json"

    @property
    def settings(self) -> Path:
        return self.root / "tellonce.env"

    @property
    def state(self) -> Path:
        """What runs now, for `make down` and `tellonce status`."""
        return self.root / "stack.json"

    @property
    def lock(self) -> Path:
        """Held by every guard of a running stack, so it is free exactly when nothing runs."""
        return self.root / "lock"

    def create(self) -> None:
        """Make the folders, for their owner alone."""
        for folder in (self.root, self.logs, self.kafka, self.connect):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def set_logs_aside(self) -> None:
        """Move the last run's logs to `logs/previous`: what is in `logs` is this run's."""
        previous = self.logs / "previous"
        shutil.rmtree(previous, ignore_errors=True)
        previous.mkdir(mode=0o700)
        for log in self.logs.iterdir():
            if log.is_file():
                log.rename(previous / log.name)


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by its owner alone from its first byte on."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
