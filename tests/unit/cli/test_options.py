"""How texts of the command line are read; what is not one is refused with the form it should have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import typer

from deploy.cli.options import instant, pairs, span


def test_an_instant_has_its_zone() -> None:
    assert instant("2026-12-01T10:00:00+01:00") == datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "now", "2026-12-01", "2026-12-01T09:00:00"])
def test_an_instant_without_one_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="2026-12-01T09:00:00Z"):
        instant(text)


def test_a_span_may_go_back() -> None:
    assert (span("15m"), span("-2d")) == (timedelta(minutes=15), timedelta(days=-2))


@pytest.mark.parametrize("text", ["", "90", "1.5h", "--2d"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="15m"):
        span(text)


def test_pairs_are_names_and_values() -> None:
    assert pairs(["a=x", "b=y=z"], "--field") == {"a": "x", "b": "y=z"}


@pytest.mark.parametrize("given", [["a"], ["=x"], ["a="], ["a=x", "a=y"]])
def test_pairs_that_are_none_or_come_twice_are_refused(given: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        pairs(given, "--field")
