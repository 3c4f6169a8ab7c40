"""What everything in a `product.yaml` is made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from schemas.durations import parse_duration

Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


class Part(BaseModel):
    """Base of everything in a product: frozen, and a key that nobody reads is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
