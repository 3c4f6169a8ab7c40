"""How messages of a kind are collected into one: every so often, or at a wall time in each person's zone."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from schemas.products.part import Duration, Part

SHORTEST = timedelta(seconds=10)
"""A window closes 2 s after its end; shorter than this it would collect nothing."""


class Weekday(StrEnum):
    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class Digest(Part):
    """The default of a kind on a channel; a person may lengthen, shorten or switch it off."""

    every: Duration | None = None
    at: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    """Wall time, such as "09:00"; quote it in YAML."""
    on: Weekday | None = None
    """With `at`: only on this day of the week."""
    max_items: Annotated[int, Field(ge=2, le=1000)] = 20
    """So many are listed, the rest is counted."""

    @model_validator(mode="after")
    def _has_one_rhythm(self) -> Digest:
        if (self.every is None) == (self.at is None):
            raise ValueError("a digest is closed either `every` so often or `at` a wall time")
        if self.on is not None and self.at is None:
            raise ValueError("`on` goes with `at`, such as on: monday, at: '08:00'")
        if self.every is not None and self.every < SHORTEST:
            raise ValueError(f"every: at least {SHORTEST.seconds}s")
        return self
