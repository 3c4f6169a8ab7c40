"""Any interleaving ends as serial execution; and each safeguard is needed.

A mutant takes one safeguard away, and the machine must then turn red: a safeguard that could be removed unnoticed
would not be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from consumers.runtime import batch as runtime_batch
from consumers.runtime.triage import Triage
from deploy.local.stack import Stack
from tests.property.supersession_machine import STACK, Machine


@pytest.fixture(autouse=True)
def _stack(pg_only: Stack) -> Iterator[None]:
    STACK[:] = [pg_only]
    yield
    STACK.clear()


PROFILE = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


FINDING = settings(PROFILE, phases=[Phase.generate], report_multiple_bugs=False)
"""A mutant has to be found, not explained: no shrinking."""


def test_any_interleaving_ends_as_serial_execution() -> None:
    run_state_machine_as_test(Machine, settings=PROFILE)


def _turns_red() -> bool:
    """Whether the machine finds the fault; what it raises is an assertion or a violated constraint."""
    try:
        run_state_machine_as_test(Machine, settings=FINDING)
    except (AssertionError, psycopg.Error, BaseExceptionGroup):
        return True
    return False


def test_without_the_fence_the_machine_turns_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale consumer then sets the position back."""
    monkeypatch.setattr(runtime_batch, "check", lambda _expected, _rows: None)
    assert _turns_red()


def test_without_the_anti_join_the_machine_turns_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """What capture sends again is then decided again."""
    real = Triage.of

    def forgetful(known: Any, exceptions: Any, oldest: Any) -> Triage:
        return real(known, [(ordinal, visible, False) for ordinal, visible, _ in exceptions], oldest)

    monkeypatch.setattr(Triage, "of", forgetful)
    assert _turns_red()
