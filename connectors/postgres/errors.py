"""What a database error means for whoever met it, by SQLSTATE; and the names of our own refusals."""

from __future__ import annotations

from enum import StrEnum

from psycopg import Error, InterfaceError, OperationalError


class Refusal(StrEnum):
    """SQLSTATEs that our functions, triggers and policies raise; `schemas/sql/migrations` has the literals.

    They never change their meaning: programs in other languages match on them.
    """

    UNKNOWN_TENANT = "TO001"
    UNKNOWN_PRODUCT = "TO002"
    FOREIGN_TOPIC = "TO003"
    INVALID_SUBJECT = "TO004"
    INVALID_EVENT_ID = "TO005"
    PAYLOAD_TOO_LARGE = "TO006"
    MALFORMED_PAYLOAD = "TO007"
    EVENT_CONFLICT = "TO008"
    INVALID_ATTRIBUTE = "TO009"
    TOO_MANY_DAYS = "TO101"
    DAY_WITHIN_HORIZON = "TO102"
    DAY_UNDECIDED = "TO103"
    UNKNOWN_ROLE = "TO201"


class Fault(StrEnum):
    """What to do about a failed transaction; it is rolled back in every case.

    CONFLICT  somebody else was faster: decide again on fresh state at once
    WEATHER   the database is busy, restarting or away: back off and try again, never skip
    DATA      the values are at fault (classes 22 and 23): again will fail again
    REFUSED   our own rules said no (class TO): again will fail again
    DEFECT    the statement or the installation is at fault: stop and tell
    """

    CONFLICT = "conflict"
    WEATHER = "weather"
    DATA = "data"
    REFUSED = "refused"
    DEFECT = "defect"


_CONFLICTS = frozenset({"40001", "40P01", "23505"})
_SESSION_ENDED = frozenset({"25P03", "25P04"})
"""Our own limits ended the session of a process that stood still inside a transaction: it needs another, not a
mechanic. The rest of class 25 is a defect."""
_BY_CLASS = {
    "08": Fault.WEATHER,  # connection exception
    "22": Fault.DATA,
    "23": Fault.DATA,
    "40": Fault.WEATHER,  # transaction rollback
    "53": Fault.WEATHER,  # insufficient resources
    "55": Fault.WEATHER,  # object not in prerequisite state: lock not available
    "57": Fault.WEATHER,  # operator intervention: shutdown, terminated, cancelled by a timeout
    "58": Fault.WEATHER,  # system error
    "TO": Fault.REFUSED,
}


def fault(error: Error) -> Fault:
    """The kind of `error`.

    Without a SQLSTATE it is the connection that broke, or was closed under us: weather.
    """
    state = error.sqlstate
    if state is None:
        return Fault.WEATHER if isinstance(error, OperationalError | InterfaceError) else Fault.DEFECT
    if state in _CONFLICTS:
        return Fault.CONFLICT
    if state in _SESSION_ENDED:
        return Fault.WEATHER
    return _BY_CLASS.get(state[:2], Fault.DEFECT)


def refusal(error: Error) -> Refusal | None:
    """Which of our refusals this is; None for an error of Postgres itself."""
    try:
        return Refusal(error.sqlstate or "")
    except ValueError:
        return None


def message(error: Error) -> str:
    """The server's message and hint in one line, without the context lines that repeat our SQL."""
    text = error.diag.message_primary or str(error).strip()
    return f"{text}. {error.diag.message_hint}" if error.diag.message_hint else text
