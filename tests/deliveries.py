"""What tests of deliveries share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

WAY_TO: Final[Mapping[str, Sequence[str]]] = {
    "queued": (),
    "sending": ("sending",),
    "sent": ("sending", "sent"),
    "failed": ("sending", "failed"),
    "suppressed": ("suppressed",),
    "expired": ("expired",),
    "held": ("sending", "held"),
}
"""The states that a new delivery passes through to get to each: the database allows no other way."""
