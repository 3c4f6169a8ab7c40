"""A small product's folder that a test may break."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connectors.registry import check_product

PRODUCT = """\
product: cards
subject: card
journey:
  steps:
    - {on: cards.ordered, nudge: cards.finish_order, after: 30m}
    - {on: cards.verified, nudge: cards.collect, after: 0s}
  ends_on: [cards.closed]
kinds:
  cards.finish_order:
    audiences: [{who: applicant, channels: [email]}]
  cards.collect:
    audiences: [{who: applicant, channels: [inapp]}]
  cards.blocked:
    on: cards.blocked
    audiences: [{who: payload.owner_id, channels: [email, inapp]}]
"""
SCHEMA = """\
{
  "type": "record",
  "name": "%s",
  "namespace": "cards",
  "fields": [
    {"name": "owner_id", "type": "string", "doc": "The card's owner."}
  ]
}
"""
EVENTS = ("ordered", "verified", "closed", "blocked")
TEMPLATES = (
    "finish_order/email.en.txt",
    "finish_order/email.en.subject",
    "collect/inapp.en.txt",
    "blocked/email.en.txt",
    "blocked/email.en.subject",
    "blocked/inapp.en.txt",
)


@dataclass(frozen=True, slots=True)
class Folder:
    """A product's folder on disk."""

    path: Path

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace a text that is there once."""
        text = (self.path / file).read_text()
        assert text.count(old) == 1, text
        (self.path / file).write_text(text.replace(old, new))

    def write(self, file: str, content: str | bytes) -> None:
        """Write one file whole."""
        target = self.path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def remove(self, file: str) -> None:
        """Remove one file."""
        (self.path / file).unlink()

    def add_field(self, event: str, **definition: Any) -> None:
        """Add a field to an event's schema."""
        file = self.path / f"events/{event}.avsc"
        schema = json.loads(file.read_text())
        schema["fields"].append(definition)
        file.write_text(json.dumps(schema, indent=2))

    def problems(self) -> list[str]:
        """What the check finds, as it is shown, with paths from the folder."""
        return [str(problem).removeprefix(f"{self.path}/") for problem in check_product(self.path)]


@pytest.fixture
def cards(tmp_path: Path) -> Folder:
    """A valid product named `cards`, nothing recorded yet."""
    folder = Folder(tmp_path / "cards")
    folder.write("product.yaml", PRODUCT)
    for event in EVENTS:
        folder.write(f"events/{event}.avsc", SCHEMA % event)
        folder.write(f"samples/{event}.json", '{\n  "owner_id": "u-1"\n}\n')
    for template in TEMPLATES:
        folder.write(f"templates/{template}.j2", "Your card.\n")
    return folder
