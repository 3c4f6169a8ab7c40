"""The stack runs for everybody: here for a user who may write nowhere but in a fresh folder.

Run by root, the test becomes such a user and keeps one privilege, reading everything, because a clone and a
Python below /root are closed to others. Not run by root, it shows what every other test here shows too.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.local.jars import ensure
from deploy.local.stack import silent

CLONE = Path(__file__).parents[2]

PROGRAM = """
import os, sys
from pathlib import Path
from deploy.local.stack import Stack
assert os.geteuid() != 0
root = Path(sys.argv[1])
with Stack.start(root) as stack:
    assert stack.layout.postgres == root / "postgres", "a user's database lies below the stack's root"
    print(*stack.components)
Stack.erase(root)
"""


def test_all_engines_run_for_an_unprivileged_user() -> None:
    folder = Path("/tmp") / f"tellonce-{os.getpid()}"  # pytest's are closed to other users
    folder.mkdir(mode=0o700)
    become: list[str] = []
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        become = [
            "setpriv",
            f"--reuid={nobody.pw_uid}",
            f"--regid={nobody.pw_gid}",
            "--clear-groups",
            "--inh-caps=-all,+dac_read_search",
            "--ambient-caps=-all,+dac_read_search",
        ]
    cache = ensure(silent).home.parent
    try:
        run = subprocess.run(
            [*become, sys.executable, "-c", PROGRAM, str(folder / "stack")],
            cwd="/",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "PYTHONPATH": str(CLONE),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TELLONCE_CACHE": str(cache),
            },
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["postgres", "kafka", "connect"]
