"""`up`, `down` and `reset` as functions that return plain data: what the command line calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.runner import Progress
from deploy.local.running import Component
from deploy.local.stack import Stack, silent

ROOT = Path(".local")
"""Where the stack of a clone lives, from the clone's top folder; `connectors.settings` looks there too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found and did. `alive` tells of each engine after it."""

    root: Path
    changed: bool
    settings_file: Path | None = None
    kafka_bootstrap: str = ""
    connect_url: str = ""
    alive: Mapping[Component, bool] = field(default_factory=dict)


def up(root: Path = ROOT, progress: Progress = silent) -> Outcome:
    """Start the stack and leave it running, or find that it runs. Raises StackError if it cannot.

    A stack of which an engine has died meanwhile is stopped and started whole.
    """
    running = Stack.attach(root)
    if running is not None:
        if all(_alive(running).values()):
            return _outcome(running, changed=False)
        progress("an engine has died: stopping the others first")
        running.stop()
    return _outcome(Stack.start(root, progress=progress, detached=True), changed=True)


def down(root: Path = ROOT, progress: Progress = silent) -> Outcome:
    """Stop the stack that `up` left running, keeping its data; fine when there is none."""
    running = Stack.attach(root)
    if running is None:
        return Outcome(root, changed=False)
    progress("stopping Connect, Kafka and PostgreSQL")
    running.stop()
    return Outcome(root, changed=True)


def reset(root: Path = ROOT, progress: Progress = silent) -> Outcome:
    """Stop it if it runs, and delete its data, logs and passwords."""
    down(root, progress)
    existed = root.exists()
    Stack.erase(root)
    return Outcome(root, changed=existed)


def state(root: Path = ROOT) -> Outcome:
    """What runs now."""
    running = Stack.attach(root)
    return Outcome(root, changed=False) if running is None else _outcome(running, changed=False)


def _alive(stack: Stack) -> dict[Component, bool]:
    return {name: stack.alive(name) for name in stack.components}


def _outcome(stack: Stack, *, changed: bool) -> Outcome:
    return Outcome(
        stack.layout.root,
        changed,
        stack.layout.settings,
        stack.bootstrap,
        stack.connect_url,
        _alive(stack),
    )
