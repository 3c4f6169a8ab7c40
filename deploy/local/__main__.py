"""`python -m deploy.local up|down|reset|state`: the local stack without the rest of the command line."""

from __future__ import annotations

import sys
from typing import TextIO

from deploy.local import commands
from deploy.local.errors import StackError

ACTIONS = {"up": commands.up, "down": commands.down, "reset": commands.reset}


def main(arguments: list[str]) -> int:
    """Run one action; 1 and the reason on standard error if it fails, 2 if there is no such action."""
    match arguments:
        case ["state"]:
            outcome = commands.state()
        case [action] if action in ACTIONS:
            try:
                outcome = ACTIONS[action](progress=lambda line: _say(sys.stderr, line))
            except StackError as error:
                _say(sys.stderr, str(error))
                return 1
        case _:
            _say(sys.stderr, "usage: python -m deploy.local up|down|reset|state")
            return 2
    for name, alive in outcome.alive.items():
        _say(sys.stdout, f"{name}: {'alive' if alive else 'dead'}")
    return 0


def _say(to: TextIO, line: str) -> None:
    to.write(line + "\n")
    to.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
