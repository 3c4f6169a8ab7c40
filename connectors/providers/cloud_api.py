"""WhatsApp's Cloud API in both directions: the body of a request, and what an answer means. Pure.

Codes as Meta documents them (WhatsApp Business Platform, *Error codes*, June 2026); they, not the HTTP status, say
what happened, so a known code wins over the status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast

import orjson

from connectors.providers.backoff import retry_after
from connectors.providers.model import Answer, ContentError, Message, Outcome, told

E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")
MOST_TEXT: Final = 4096
"""Characters of a text message; longer ones are refused by the API."""

ACCOUNT_CODES: Final = frozenset({0, 3, 10, 33, 190, 368, *range(200, 300)}) | {
    131005,  # access denied
    131031,  # account locked
    131037,  # display name not approved
    131042,  # payment
    131045,  # certificate of the phone number
    133010,  # phone number not registered
}
"""Our account cannot send, whatever the message: an operator mends it, then all that waits goes."""
BUSY_CODES: Final = frozenset({4, 80007, 130429, 131048, 133016})
"""The account's rate is used up."""
TRANSIENT_CODES: Final = frozenset({2, 131000, 131016, 131057, 133004})
"""Their side, by its own words for a while."""
MESSAGE_LATER_CODES: Final = frozenset({1, 131056, 132015, 132069})
"""This message may go later while others go now: unclear, this pair of numbers too often, template paused, flow
throttled."""
MESSAGE_CODES: Final = frozenset(
    {100, 130472, 130497, 131008, 131009, 131021, 131026, 131047, 131049, 131050, 131051, 131052, 131053}
    | {132000, 132001, 132005, 132007, 132012, 132016, 132018, 132068, 135000}
)
"""This message will never go: parameters, template, recipient, or Meta's own choice not to deliver it."""
PHONE_NUMBER_UNKNOWN: Final = (100, 33)
"""Code and subcode for a phone number id that the token cannot see: the account's fault, under a message's code."""

ACCOUNT_STATUS: Final = frozenset({401, 402, 403, 404, 407})
"""Credentials, payment, or a URL that is not the API's."""
LATER_STATUS: Final = frozenset({408, 409, 425})
"""Not taken in time; the key's earlier attempt is still being worked on; too early."""
UNKNOWN_STATUS: Final = frozenset({502, 504})
"""Said by something between us and an API that may have taken the message."""


def request_body(message: Message) -> bytes:
    """The JSON to post. `ContentError` when the frozen body or the number cannot be said in it."""
    if not E164.fullmatch(message.address):
        raise ContentError("the address is not a phone number in E.164")
    return orjson.dumps(
        {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to": message.address,
            "biz_opaque_callback_data": f"{message.tenant_id}/{message.delivery_id}",
            **_content(message.content),
        }
    )


def read_answer(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Answer:
    """What an answer means. Anything but a documented answer to a success is UNKNOWN."""
    said = _object(body)
    if 200 <= status < 300:
        reference = _message_id(said)
        if reference is None:
            return Answer(
                Outcome.UNKNOWN, status=status, error="a success without a message id", systematic=True
            )
        return Answer(Outcome.ACCEPTED, status=status, provider_ref=reference)
    error = _mapping(said.get("error"))
    code, subcode = error.get("code"), error.get("error_subcode")
    outcome, systematic = _verdict(status, code, subcode, transient=error.get("is_transient") is True)
    return Answer(
        outcome,
        status=status,
        retry_after=retry_after(headers.get("Retry-After"), now) if outcome is Outcome.RETRY else None,
        error=told(_words(status, error)),
        systematic=systematic,
    )


def _verdict(status: int, code: object, subcode: object, *, transient: bool) -> tuple[Outcome, bool]:
    """The outcome, and whether it is systematic."""
    if isinstance(code, int):
        if code in ACCOUNT_CODES | BUSY_CODES | TRANSIENT_CODES or (code, subcode) == PHONE_NUMBER_UNKNOWN:
            return Outcome.RETRY, True
        if code in MESSAGE_LATER_CODES:
            return Outcome.RETRY, False
        if code in MESSAGE_CODES:
            return Outcome.REJECTED, False
    if status in UNKNOWN_STATUS:
        return Outcome.UNKNOWN, True
    if status in LATER_STATUS or (transient and status < 500):
        return Outcome.RETRY, False
    if status in ACCOUNT_STATUS or status == 429 or status >= 500 or status < 400:
        return Outcome.RETRY, True
    return Outcome.REJECTED, False


def _content(content: Mapping[str, object]) -> dict[str, object]:
    match content:
        case {"template": {"name": str(name), "language": str(language), **rest}}:
            template: dict[str, object] = {"name": name, "language": {"code": language}}
            if parameters := _parameters(rest.get("parameters")):
                template["components"] = [{"type": "body", "parameters": parameters}]
            return {"type": "template", "template": template}
        case {"text": str(text)} if 0 < len(text) <= MOST_TEXT:
            return {"type": "text", "text": {"preview_url": False, "body": text}}
        case _:
            raise ContentError(f"neither a template nor a text of 1 to {MOST_TEXT} characters")


def _parameters(given: object) -> list[dict[str, str]]:
    match given:
        case None:
            return []
        case Mapping():
            return [
                {"type": "text", "parameter_name": str(name), "text": str(value)}
                for name, value in given.items()
            ]
        case list() | tuple():
            return [{"type": "text", "text": str(value)} for value in given]
        case _:
            raise ContentError("the template's parameters are neither a list nor a mapping")


def _object(body: bytes) -> Mapping[str, object]:
    try:
        return _mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _message_id(said: Mapping[str, object]) -> str | None:
    match said.get("messages"):
        case [{"id": str(reference)}, *_] if 0 < len(reference) <= 256:
            return reference
        case _:
            return None


def _words(status: int, error: Mapping[str, object]) -> str:
    if not error:
        return f"HTTP {status}"
    details = _mapping(error.get("error_data")).get("details") or error.get("message") or ""
    return f"HTTP {status}, code {error.get('code')}: {details}"
