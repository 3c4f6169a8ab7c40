"""What became of an event, in words: pure, over what `why` read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, assert_never

from deploy.cli.messages import Notified
from schemas.states import DeadReason, DecisionOutcome, DropReason, NudgeReason


class Row(NamedTuple):
    """One line of query `told`: an event, and one group's decision on it if there is one."""

    event_id: str
    event_type: str
    occurred_at: datetime
    recorded_at: datetime
    traceparent: str | None
    group_name: str | None
    outcome: str | None
    reason: str | None
    decided_at: datetime | None
    nudge_id: str | None
    nudge_kind: str | None
    nudge_due_at: datetime | None
    cancelled_nudge_id: str | None
    cancelled_kind: str | None
    cancelled_reason: str | None
    dead_letter_id: int | None


class Letter(NamedTuple):
    """One line of query `undecided_letters`: a record that became a dead letter and has no decision."""

    dead_letter_id: int
    record: str
    """Where it lay, the same for every group that met it."""
    event_id: str | None
    event_type: str | None
    group_name: str
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Told:
    """What one group made of the event; `words` says it in a sentence."""

    group: str
    outcome: str
    reason: str | None
    decided_at: datetime | None
    words: str
    nudge_id: str | None = None
    nudge_kind: str | None = None
    nudge_due_at: datetime | None = None
    cancelled_nudge_id: str | None = None
    cancelled_kind: str | None = None
    dead_letter: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One event of the story; without decisions it is still on its way.

    A record without a row in the outbox has of all this what could be read of it, and no times.
    """

    event_id: str | None
    event_type: str | None
    occurred_at: datetime | None
    recorded_at: datetime | None
    traceparent: str | None
    decisions: list[Told] = field(default_factory=list)
    notified: list[Notified] = field(default_factory=list)
    """Who should know because of it. What a nudge says stands where the clock said that it was due."""


DROPPED: Mapping[DropReason, str] = {
    DropReason.NOT_FURTHER: "nothing changed: it is not further than what was already reached",
    DropReason.ENDED: "nothing changed: the journey had ended",
    DropReason.BEFORE_RESTART: "nothing changed: it happened before the journey began anew",
    DropReason.TOO_OLD: "nothing changed: it came back from before the horizon",
    DropReason.SUPERSEDED: "nothing told: the nudge it was due for no longer stands",
}
DEAD: Mapping[DeadReason, str] = {
    DeadReason.MISSING_HEADER: "a header or the key is missing",
    DeadReason.MALFORMED_HEADER: "a header is not what it must be",
    DeadReason.UNKNOWN_PRODUCT: "no product here has its topic",
    DeadReason.UNKNOWN_TYPE: "the product has no such event type",
    DeadReason.UNKNOWN_SCHEMA: "it was written with a schema that is not in the product's history",
    DeadReason.WRONG_PRODUCT: "it names another product than its topic",
    DeadReason.WRONG_TENANT: "it names another tenant than its key",
    DeadReason.WRONG_SUBJECT: "it names another subject than its key",
    DeadReason.EMPTY: "it has no body",
    DeadReason.OVERSIZED: "its body is over the limit",
    DeadReason.UNDECODABLE: "its body is in no form that is known",
    DeadReason.CORRUPT_AVRO: "its Avro does not read",
    DeadReason.SCHEMA_MISMATCH: "its body is not what the event's schema says",
    DeadReason.UNKNOWN_STEP: "the lead reached a step that the journey no longer has",
    DeadReason.NOT_COMMITTED: "its transaction never committed",
    DeadReason.LOST: "capture lost it however often it was sent",
    DeadReason.POISON: "deciding it failed, alone and twice",
}
UNTOLD = "nobody to tell: whom it is for is not assigned, not active, or not reached by its channels"
CANCELLED: Mapping[NudgeReason, str] = {
    NudgeReason.SUPERSEDED: "superseded",
    NudgeReason.ENDED: "the journey ended",
    NudgeReason.RESTARTED: "the journey began anew",
    NudgeReason.NOBODY: "nobody to tell",
    NudgeReason.KIND_REMOVED: "the product has given up its kind",
    NudgeReason.SUPPRESSED: "nobody wanted to be told",
}


def tell(rows: Iterable[Row], letters: Iterable[Letter] = ()) -> list[Line]:
    """The story in the rows' order, each event once with all that was decided on it; every letter, in the order
    given, where its group met it.
    """
    lines = _decided(rows)
    told = list(lines.values())
    others: dict[str, Line] = {}
    for letter in letters:
        line = lines.get(letter.event_id or "") or others.get(letter.record)
        if line is None:
            line = others[letter.record] = Line(letter.event_id, letter.event_type, None, None, None)
            told.insert(_place(told, letter), line)
        line.decisions.append(_dead(letter))
    return told


def place_notified(lines: list[Line], notified: Iterable[Notified], timers: Mapping[str, str]) -> None:
    """Put what was prepared where it was: with the event itself, for a nudge with its timer; `timers` has the timers'
    event ids by nudge. What lost its line stands at the end, on one of its own, without a type and times.
    """
    by_event = {line.event_id: line for line in lines if line.event_id is not None}
    for each in notified:
        event_id = timers.get(each.notice.nudge_id or "", each.notice.event_id)
        line = by_event.get(event_id)
        if line is None:
            line = by_event[event_id] = Line(event_id, None, None, None, None)
            lines.append(line)
        line.notified.append(each)


def _place(told: Sequence[Line], letter: Letter) -> int:
    """Behind the last that its group had decided by then: a record without a row has no place of its own."""
    for place in range(len(told), 0, -1):
        for seen in told[place - 1].decisions:
            if seen.group == letter.group_name and seen.decided_at and seen.decided_at <= letter.created_at:
                return place
    return 0


def _dead(letter: Letter) -> Told:
    return Told(
        letter.group_name,
        DecisionOutcome.DEAD_LETTER,
        letter.reason,
        letter.created_at,
        _dead_in_words(letter.reason, letter.dead_letter_id),
        dead_letter=letter.dead_letter_id,
    )


def _decided(rows: Iterable[Row]) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    for row in rows:
        line = lines.setdefault(
            row.event_id,
            Line(row.event_id, row.event_type, row.occurred_at, row.recorded_at, row.traceparent),
        )
        if row.group_name is not None and row.outcome is not None:
            line.decisions.append(
                Told(
                    row.group_name,
                    row.outcome,
                    row.reason,
                    row.decided_at,
                    in_words(row),
                    row.nudge_id,
                    row.nudge_kind,
                    row.nudge_due_at,
                    row.cancelled_nudge_id,
                    row.cancelled_kind,
                    row.dead_letter_id,
                )
            )
    return lines


def in_words(row: Row) -> str:
    """One decision as a sentence without its full stop."""
    outcome = DecisionOutcome(row.outcome or "")
    match outcome:
        case DecisionOutcome.SCHEDULED:
            due = f"{row.nudge_due_at:%Y-%m-%dT%H:%M:%SZ}" if row.nudge_due_at else "later"
            said = f"nudge {row.nudge_kind or row.nudge_id} due {due}"
        case DecisionOutcome.IMMEDIATE:
            said = "told at once" if row.reason is None else f"to be told at once, and {UNTOLD}"
        case DecisionOutcome.ADVANCED:
            said = "a retired step: progress noted, nothing to say"
        case DecisionOutcome.ENDED:
            said = "the journey ended"
        case DecisionOutcome.RESTARTED:
            said = "the journey began anew"
        case DecisionOutcome.FIRED:
            what = f"nudge {row.nudge_kind or row.nudge_id}" if row.nudge_id else "the news"
            return f"{what} told" if row.reason is None else f"{what} to be told, and {UNTOLD}"
        case DecisionOutcome.CANCELLED:
            gone = NudgeReason(row.reason or NudgeReason.NOBODY)
            why = UNTOLD if gone is NudgeReason.NOBODY else CANCELLED[gone]
            return f"nudge {row.cancelled_kind or row.cancelled_nudge_id} due and cancelled: {why}"
        case DecisionOutcome.IGNORED:
            return "nothing here is about it"
        case DecisionOutcome.TAKEN:
            return "taken by its channel"
        case DecisionOutcome.LIFECYCLE:
            return "beside the journey: it cancels nothing"
        case DecisionOutcome.DROPPED:
            return DROPPED[DropReason(row.reason or "")]
        case DecisionOutcome.DEAD_LETTER:
            return _dead_in_words(row.reason or "", row.dead_letter_id)
        case _:
            assert_never(outcome)
    return said + _cancelled(row)


def _dead_in_words(reason: str, number: int | None) -> str:
    """With the number by which `tellonce dead-letter` knows it."""
    return f"dead letter{'' if number is None else f' {number}'}: {DEAD[DeadReason(reason)]}"


def _cancelled(row: Row) -> str:
    if row.cancelled_nudge_id is None:
        return ""
    why = CANCELLED[NudgeReason(row.cancelled_reason)] if row.cancelled_reason else "cancelled"
    return f"; nudge {row.cancelled_kind or row.cancelled_nudge_id} cancelled ({why})"
