"""What a refusal or a cut means, by the stage of the dialogue it came in (RFC 5321). Pure.

| stage | 4yz | 5yz | cut, time-out, garbage |
|---|---|---|---|
| session (connect to AUTH) | retry, systematic | retry, systematic | retry, systematic |
| MAIL | retry, systematic | retry, systematic (the sender is the account's); too large: rejected | retry, systematic |
| RCPT | retry | rejected | retry, systematic |
| DATA | retry | rejected | retry, systematic |
| content | retry | rejected | **unknown**, systematic |

421 (closing) and 530, 534, 535, 538 (authentication) are the account's wherever they come: retry, systematic.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from connectors.providers.model import Answer, Outcome, told

CLOSING: Final = 421
TOO_LARGE: Final = 552
ACCOUNT_CODES: Final = frozenset({CLOSING, 530, 534, 535, 538})


class Stage(StrEnum):
    """How far a dialogue has come: SESSION → MAIL → RCPT → DATA → CONTENT, then MAIL again for the next message."""

    SESSION = "session"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    CONTENT = "content"


def refused(stage: Stage, code: int, text: str) -> Answer:
    """The meaning of a reply other than the one that goes on."""
    if not 400 <= code <= 599:
        return cut(stage, f"an unexpected reply {code} {text}")
    error = told(f"{stage}: {code} {text}")
    if stage is Stage.SESSION or code in ACCOUNT_CODES or (stage is Stage.MAIL and not _is_size(code, text)):
        return Answer(Outcome.RETRY, status=code, error=error, systematic=True)
    return Answer(Outcome.REJECTED if code >= 500 else Outcome.RETRY, status=code, error=error)


def cut(stage: Stage, what: str) -> Answer:
    """The meaning of no reply. Before the content a server has nothing to deliver."""
    outcome = Outcome.UNKNOWN if stage is Stage.CONTENT else Outcome.RETRY
    return Answer(outcome, error=told(f"{stage}: {what}"), systematic=True)


def _is_size(code: int, text: str) -> bool:
    return code == TOO_LARGE or text.startswith("5.3.4")
