"""What a log is and how its rows become events: everything the command line says about an import."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Literal

LogFormat = Literal["csv", "jsonl"]

FORMATS: Mapping[str, LogFormat] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}

IMPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class SpecError(ValueError):
    """The import contradicts itself; the message names the option and what it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSpec:
    """One import of one log into one tenant. Columns are named as in the header (CSV) or as keys (JSON
    lines).

    Its identity is `(tenant, import_id)`: the same import of the same log changes nothing, whoever repeats
    it, and another log under the same id is refused.
    """

    path: Path
    tenant: str
    product: str
    subject_column: str
    time_column: str
    type_column: str | None = None
    """Where the row says what happened; None when every row is `event_type`."""
    event_type: str | None = None
    type_map: Mapping[str, str] = field(default_factory=dict)
    """What the type column holds → event type. Empty: it holds event types."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Payload field → column, converted to what the event's contract says of the field."""
    time_format: str = "iso"
    """`iso`, `epoch`, `epoch_ms`, or a strptime pattern."""
    zone: tzinfo = UTC
    """The zone of times that name none."""
    import_id: str = ""
    """Empty: the file's name without its ending."""
    log_format: LogFormat | None = None
    """None: by the file's ending."""

    def __post_init__(self) -> None:
        if (self.type_column is None) == (self.event_type is None):
            raise SpecError("give either --type-column (with --type-map) or one --type for every row")
        if self.type_map and self.type_column is None:
            raise SpecError("--type-map maps what --type-column holds; give the column too")
        if not IMPORT_ID.fullmatch(self.name):
            raise SpecError(f"import id {self.name!r}: letters, digits, '.', '_' and '-' only, at most 100")
        if self.log_format is None and self.path.suffix.lower() not in FORMATS:
            ending = self.path.suffix
            raise SpecError(f"{self.path.name}: csv or jsonl? {ending!r} does not tell; say --format")

    @property
    def name(self) -> str:
        """The import's id within its tenant."""
        return self.import_id or self.path.stem

    @property
    def format(self) -> LogFormat:
        return self.log_format or FORMATS[self.path.suffix.lower()]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once, in a fixed order."""
        named = (self.subject_column, self.time_column, self.type_column, *self.fields.values())
        return tuple(dict.fromkeys(column for column in named if column is not None))


def type_map(text: str) -> dict[str, str]:
    """`1=worklog.lead_handled,3=worklog.application_completed` → a map; raises SpecError at the first bad
    pair.
    """
    pairs: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        value, separator, event_type = pair.rpartition("=")
        if not separator or not value or not event_type:
            raise SpecError(f"--type-map {pair!r}: write value=event.type, pairs separated by commas")
        if value in pairs:
            raise SpecError(f"--type-map names {value!r} twice")
        pairs[value] = event_type
    return pairs
