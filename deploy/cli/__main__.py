"""`python -m deploy.cli`: the same as `tellonce`; how a child process is started."""

from deploy.cli.main import run

run()
