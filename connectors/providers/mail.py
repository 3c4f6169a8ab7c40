"""An email as it goes over the wire. Pure, and the same for every attempt but its `Date`.

Written line by line: `email.message.EmailMessage` parses every header it is given, ten milliseconds a message.
"""

from __future__ import annotations

import hashlib
import re
from binascii import b2a_qp
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.utils import format_datetime, formataddr
from typing import Final

from connectors.providers.accounts import SmtpAccount
from connectors.providers.model import ContentError, Message

MOST_PLAIN: Final = 68
"""Characters of a subject that leave its line below 78 (RFC 5322, 2.1.1)."""
LINE_END: Final = re.compile(r"\r\n|\r")
LOCAL_PART: Final = re.compile(r'[^\s\x00-\x20\x7f<>()\[\],;:\\"@]{1,64}')
LABEL: Final = re.compile(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]{0,61}[A-Za-z0-9]")
KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Of an idempotency key that can stand in a message id as it is."""
UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
"""What could end a header line early, now or in what reads it next."""
TOKEN: Final = re.compile(r"[^A-Za-z0-9_.-]+")
STUFFING: Final = re.compile(rb"(?m)^\.")


@dataclass(frozen=True, slots=True)
class Mail:
    """An envelope and its content, dot-stuffed and with the final dot (RFC 5321, 4.5.2)."""

    sender: str
    recipient: str
    message_id: str
    """Without angle brackets; derived from the idempotency key, so that receivers can collapse a resend."""
    content: bytes
    needs_utf8: bool
    """The recipient's local part is not ASCII: only a server with SMTPUTF8 (RFC 6531) can take it."""


def build(message: Message, account: SmtpAccount, at: datetime) -> Mail:
    """The mail for one attempt. `ContentError` when the frozen body or the address cannot be said in one."""
    recipient = _recipient(message.address)
    subject, text = _text(message.content, "subject"), _text(message.content, "text")
    html = _text(message.content, "html") if "html" in message.content else None
    message_id = f"{_key(message.idempotency_key)}@{account.domain}"
    headers = [
        f"From: {formataddr((_one_line(account.from_name), account.from_address))}",
        f"To: {recipient}",
        f"Subject: {_encoded('Subject', _one_line(subject))}",
        f"Date: {format_datetime(at)}",
        f"Message-ID: <{message_id}>",
        "Auto-Submitted: auto-generated",  # RFC 3834: no holiday replies to a machine
        f"Feedback-ID: {_token(message.kind)}:{_token(message.tenant_id)}:email:tellonce",
        "MIME-Version: 1.0",
    ]
    if account.reply_to is not None:
        headers.append(f"Reply-To: {account.reply_to}")
    if message.traceparent:
        headers.append(f"Traceparent: {_token(message.traceparent)}")
    content = "\r\n".join(headers).encode() + b"\r\n" + _body(text, html, message_id)
    return Mail(
        sender=account.from_address,
        recipient=recipient,
        message_id=message_id,
        content=STUFFING.sub(b"..", content) + b".\r\n",
        needs_utf8=not recipient.isascii(),
    )


def _body(text: str, html: str | None, message_id: str) -> bytes:
    """The text, with its HTML as an alternative. The boundary cannot be in a part: no encoded line begins so."""
    if html is None:
        return _part("plain", text)
    boundary = f"=_{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"
    between = f"--{boundary}\r\n".encode()
    return b"".join(
        (
            f'Content-Type: multipart/alternative;\r\n boundary="{boundary}"\r\n\r\n'.encode(),
            between,
            _part("plain", text),
            between,
            _part("html", html),
            f"--{boundary}--\r\n".encode(),
        )
    )


def _part(kind: str, text: str) -> bytes:
    """Quoted-printable: lines of at most 76 ASCII characters, each ended by CR LF and never by one of them alone,
    which could end the content early at a lenient server (SMTP smuggling).
    """
    lines = LINE_END.sub("\n", text).rstrip("\n") + "\n"
    encoded = b2a_qp(lines.encode("utf-8", "replace"), istext=True).replace(b"\n", b"\r\n")
    head = f"Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    return head.encode() + encoded


def _recipient(address: str) -> str:
    local, at, domain = address.rpartition("@")
    try:
        domain = domain.encode("idna").decode("ascii")
    except UnicodeError:
        raise ContentError("the address has no valid domain") from None
    if not at or not LOCAL_PART.fullmatch(local) or not _is_domain(domain):
        raise ContentError("the address is not a mailbox@domain")
    return f"{local}@{domain}"


def _is_domain(domain: str) -> bool:
    return len(domain) <= 253 and all(LABEL.fullmatch(label) for label in domain.split("."))


def _text(content: Mapping[str, object], part: str) -> str:
    value = content.get(part)
    if not isinstance(value, str) or not value.strip():
        raise ContentError(f"the content has no {part}")
    return value


def _key(key: str) -> str:
    return key if KEY.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest()


def _one_line(value: str) -> str:
    return UNSAFE.sub(" ", value).strip()


def _token(value: str) -> str:
    return TOKEN.sub("-", value) or "-"


def _encoded(name: str, value: str) -> str:
    """A header's value as it is when that is plain and short, else in encoded words (RFC 2047), folded."""
    if value.isascii() and len(value) <= MOST_PLAIN and "=?" not in value:
        return value
    return Header(value, "utf-8", header_name=name).encode(linesep="\r\n")
