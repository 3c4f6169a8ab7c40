"""Waiting for what several processes do, with a deadline that fails the test."""

from __future__ import annotations

from collections.abc import Callable

from deploy.cli import waiting

WITHIN_S = 120.0
"""Many times what it takes; a machine may be busy with something else."""


def until(holds: Callable[[], bool], what: str) -> None:
    """Returns once it holds; fails the test, saying what did not come, when it does not."""
    assert waiting.until(holds, WITHIN_S), f"not within {WITHIN_S:.0f} s: {what}"
