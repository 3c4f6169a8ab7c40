"""PostgreSQL: its data folder, its configuration, and how it is started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg

from deploy.local.account import Account
from deploy.local.errors import StackError
from deploy.local.jars import Engines
from deploy.local.layout import write_private
from deploy.local.passwords import SUPERUSER
from deploy.local.ports import LOOPBACK
from deploy.local.process import Launch

INITDB_TIMEOUT_S = 120
STOP_GRACE_S = 30.0
"""A fast shutdown writes a checkpoint: up to max_wal_size of dirty pages on a slow disk."""

CONFIGURATION = """\
# Written at every start by deploy/local/postgres.py
listen_addresses = '{host}'
port = {port}
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
timezone = 'UTC'
log_timezone = 'UTC'
max_connections = 200

# What is measured and proved here must be durable: no fsync=off, not even for tests.
fsync = on
synchronous_commit = on
shared_buffers = '256MB'
max_wal_size = '1GB'

wal_level = 'logical'
max_replication_slots = 10
max_wal_senders = 10
# A connector that is away for long must not fill the disk; the reconciler heals what such a slot lost.
max_slot_wal_keep_size = '4GB'

shared_preload_libraries = 'pg_stat_statements'
log_line_prefix = '%m [%p] %q%u@%d '
log_min_messages = 'warning'
"""

ACCESS = f"""\
# Written at every start by deploy/local/postgres.py
host all         all {LOOPBACK}/32 scram-sha-256
host replication all {LOOPBACK}/32 scram-sha-256
"""


def prepare(
    home: Path, engines: Engines, port: int, password: str, account: Account | None, out: Path
) -> Launch:
    """Create the database files if there are none, write the configuration, and say how to start.

    With an `account`, its user may pass through `home` and owns `data` alone.
    """
    data = home / "data"
    if not (data / "PG_VERSION").exists():
        _initialise(home, data, engines, password, account)
    for name, text in (
        ("postgresql.conf", CONFIGURATION.format(host=LOOPBACK, port=port)),
        ("pg_hba.conf", ACCESS),
    ):
        path = data / name
        path.write_text(text)
        _give(path, account)
    return Launch(
        argv=(str(engines.postgres / "bin" / "postgres"), "-D", str(data)),
        cwd=Path("/"),
        environment=_environment(),
        out=out,
        stop_signal=signal.SIGINT,  # fast shutdown
        grace_s=STOP_GRACE_S,
        account=account,
    )


def answers(port: int, password: str) -> bool:
    """Whether it takes a connection and a statement."""
    try:
        with psycopg.connect(dsn(port, SUPERUSER, password, "postgres"), connect_timeout=2) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def dsn(port: int, user: str, password: str, database: str = "tellonce") -> str:
    """A URL; the passwords here need no escaping (see `passwords`)."""
    return f"postgresql://{user}:{password}@{LOOPBACK}:{port}/{database}"


def _initialise(home: Path, data: Path, engines: Engines, password: str, account: Account | None) -> None:
    """initdb into a folder of its own, moved into place when whole: a killed start leaves nothing half."""
    fresh = home / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    if account:
        for folder in (home.parent, home):
            folder.chmod(0o711)
    secret = home / "password"
    write_private(secret, password + "\n")
    for path in (fresh, secret):
        _give(path, account)
    command = [
        str(engines.postgres / "bin" / "initdb"),
        f"--pgdata={fresh}",
        f"--username={SUPERUSER}",
        f"--pwfile={secret}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        "--no-instructions",
    ]
    run = subprocess.run(
        command,
        cwd="/",
        env=_environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        timeout=INITDB_TIMEOUT_S,
        check=False,
    )
    secret.unlink()
    if run.returncode != 0:
        raise StackError(f"initdb failed:\n{(run.stdout + run.stderr).strip()}")
    fresh.rename(data)


def _give(path: Path, account: Account | None) -> None:
    if account:
        os.chown(path, account.uid, account.gid)


def _environment() -> dict[str, str]:
    """Nothing of the caller's PG* variables."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
