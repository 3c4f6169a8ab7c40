"""Who runs PostgreSQL, which refuses to be root, and where that user can work."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from deploy.local.errors import StackError

CANDIDATES = ("postgres", "nobody")
"""Unprivileged users that machines have, the better first."""

ROOT_STATE = Path("/var/lib/tellonce")
ROOT_CACHE = Path("/var/cache/tellonce")


class NoAccountError(StackError):
    """Started by root where no unprivileged user exists."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, as the guard takes it."""

    uid: int
    gid: int

    def as_json(self) -> dict[str, int]:
        return asdict(self)


def postgres_account() -> Account | None:
    """The user PostgreSQL runs as: None means whoever runs this, which is right for everybody but root."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise NoAccountError(
        f"PostgreSQL does not run as root, and none of {', '.join(CANDIDATES)} exists: `useradd postgres`"
    )


def postgres_home(root: Path) -> Path:
    """The folder of a stack's database: under its root, but for root in /var/lib, whatever the root's path.

    The other user cannot enter folders of mode 0700, which the stack's own root and many home folders are.
    """
    if os.geteuid() != 0:
        return root / "postgres"
    path = os.fsencode(root.resolve())
    readable = re.sub(rb"[^A-Za-z0-9]+", b"-", path).strip(b"-")[-60:].decode()
    return ROOT_STATE / f"{readable}-{hashlib.sha256(path).hexdigest()[:12]}"


def cache_home() -> Path:
    """Where engines are kept for all clones of this user; root's must be readable by PostgreSQL's user."""
    if named := os.environ.get("TELLONCE_CACHE"):
        return Path(named).resolve()
    if os.geteuid() == 0:
        return ROOT_CACHE
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tellonce"
