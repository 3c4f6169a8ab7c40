"""From rows to events, all of them before anything is written: pure but for reading the file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from producers.importer.convert import converter
from producers.importer.read import InvalidLogError, Problem, Row, read_rows
from producers.importer.spec import ImportSpec, SpecError
from producers.importer.times import time_parser

MAX_PROBLEMS = 50
"""Problems told one by one; a wrong option makes one per row, and nobody reads a million."""
MAX_SUBJECT = 128
"""Characters of a subject, as the outbox has it."""


class Contract(Protocol):
    """What the importer asks of an event type's contract."""

    @property
    def fields(self) -> Mapping[str, object]:
        """Payload fields with their Avro types."""
        ...

    def body(self, payload: Mapping[str, object]) -> bytes:
        """The payload as a JSON body; raises ValueError saying which field is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """One row as the event it becomes."""

    occurred_at: datetime
    subject: str
    event_type: str
    body: bytes


class _RowError(Exception):
    """A row that is no event: the column and what is wrong with it."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def plan(spec: ImportSpec, contracts: Mapping[str, Contract]) -> list[PlannedEvent]:
    """Every row of the log as its event, in file order.

    Raises `SpecError` when the options do not fit the product, and `InvalidLogError` with file, line and
    column when a row does not; then nothing is imported.
    """
    event_of = _reader(spec, contracts)
    events: list[PlannedEvent] = []
    problems: list[Problem] = []
    more = 0
    for row in read_rows(spec):
        match row:
            case Problem():
                problem = row
            case Row():
                try:
                    events.append(event_of(row))
                    continue
                except _RowError as error:
                    problem = Problem(str(spec.path), row.line, error.column, str(error))
        if len(problems) < MAX_PROBLEMS:
            problems.append(problem)
        else:
            more += 1
    if problems:
        raise InvalidLogError(problems, more)
    return events


def digest(events: Sequence[PlannedEvent]) -> str:
    """What identifies these events in this order, whatever file they came from."""
    total = hashlib.sha256()
    for event in events:
        head = f"{event.occurred_at.isoformat()}\0{event.subject}\0{event.event_type}\0"
        total.update(head.encode())
        total.update(event.body)
        total.update(b"\n")
    return total.hexdigest()


def _reader(spec: ImportSpec, contracts: Mapping[str, Contract]) -> Callable[[Row], PlannedEvent]:
    wanted = set(spec.type_map.values()) | ({spec.event_type} if spec.event_type else set())
    if unknown := sorted(wanted - contracts.keys()):
        raise SpecError(f"{spec.product} has no event type {unknown[0]!r}; it has {sorted(contracts)}")
    used = {name: contract for name, contract in contracts.items() if not wanted or name in wanted}
    there = set().union(*(contract.fields for contract in used.values()))
    if nowhere := sorted(spec.fields.keys() - there):
        raise SpecError(f"--field {nowhere[0]}: none of the event types has it; they have {sorted(there)}")
    moment = time_parser(spec.time_format, spec.zone)
    # A type takes those of the fields that it has: one log may hold several types.
    payload_readers = {name: _payload_reader(spec, name, contract) for name, contract in used.items()}

    def event_of(row: Row) -> PlannedEvent:
        values = row.values
        subject = _subject(spec.subject_column, values[spec.subject_column])
        event_type = spec.event_type or _event_type(spec, values, payload_readers)
        try:
            occurred_at = moment(values[spec.time_column])
        except (ValueError, OverflowError, OSError) as error:
            cell = values[spec.time_column]
            message = f"{cell!r} is not a time ({error}); say its --time-format or mend it"
            raise _RowError(spec.time_column, message) from error
        return PlannedEvent(occurred_at, subject, event_type, payload_readers[event_type](values))

    return event_of


def _subject(column: str, cell: object) -> str:
    subject = str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
    if not isinstance(subject, str) or not subject.strip():
        raise _RowError(column, "no subject; every row needs one")
    subject = subject.strip()
    if len(subject) > MAX_SUBJECT or ":" in subject or "\0" in subject:
        message = f"{subject!r}: a subject has at most {MAX_SUBJECT} characters, no ':' and no NUL"
        raise _RowError(column, message)
    return subject


def _event_type(spec: ImportSpec, values: Mapping[str, object], known: Mapping[str, object]) -> str:
    assert spec.type_column is not None  # the spec has a column or one type
    cell = values[spec.type_column]
    value = "" if cell is None else str(cell).strip()
    event_type = spec.type_map.get(value) if spec.type_map else value
    if event_type is None:
        raise _RowError(spec.type_column, f"{value!r} is not in the type map; add {value}=<event type>")
    if event_type not in known:
        message = f"{value!r} is no event type of product {spec.product}; give a --type-map or mend it"
        raise _RowError(spec.type_column, message)
    return event_type


def _payload_reader(
    spec: ImportSpec, event_type: str, contract: Contract
) -> Callable[[Mapping[str, object]], bytes]:
    fields = [
        (name, column, converter(contract.fields[name]))
        for name, column in spec.fields.items()
        if name in contract.fields
    ]
    columns = {name: column for name, column, _ in fields}

    def read(values: Mapping[str, object]) -> bytes:
        payload: dict[str, object] = {}
        for name, column, convert in fields:
            try:
                payload[name] = convert(values[column])
            except ValueError as error:
                raise _RowError(column, f"{values[column]!r} for {name}: {error}") from error
        try:
            return contract.body(payload)
        except ValueError as error:
            said = str(error)
            column = next((columns[name] for name in columns if re.search(rf"\b{name}\b", said)), "-")
            raise _RowError(column, f"{event_type}: {error}") from error

    return read
