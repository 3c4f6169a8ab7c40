"""An email as it goes over the wire. Pure, and the same for every attempt but its `Date`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from connectors.providers.accounts import SmtpAccount
from connectors.providers.model import ContentError, Message

WIRE: Final = SMTP.clone(cte_type="7bit")
"""7 bit: passes any relay, also one without 8BITMIME."""
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
    message_id = f"{_key(message.idempotency_key)}@{account.domain}"
    mail = EmailMessage(policy=WIRE)
    mail["From"] = Address(_one_line(account.from_name), addr_spec=account.from_address)
    local, _, domain = recipient.rpartition("@")
    mail["To"] = Address(username=local, domain=domain)
    if account.reply_to is not None:
        mail["Reply-To"] = account.reply_to
    mail["Subject"] = _one_line(subject)
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{message_id}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday replies to a machine
    mail["Feedback-ID"] = ":".join(
        _token(part) for part in (message.kind, message.tenant_id, "email", "tellonce")
    )
    if message.traceparent:
        mail["Traceparent"] = _one_line(message.traceparent)
    mail.set_content(text)
    if (html := message.content.get("html")) is not None:
        if not isinstance(html, str):
            raise ContentError("the content's html is not text")
        mail.add_alternative(html, subtype="html")
        mail.set_boundary(f"=_{hashlib.sha256(message_id.encode()).hexdigest()[:32]}")
    return Mail(
        sender=account.from_address,
        recipient=recipient,
        message_id=message_id,
        content=STUFFING.sub(b"..", _lines(mail.as_bytes())) + b".\r\n",
        needs_utf8=not recipient.isascii(),
    )


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


def _lines(content: bytes) -> bytes:
    """Every line ended by CR LF: a lone one would let content end early at a lenient server (SMTP smuggling)."""
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")
    return lines if lines.endswith(b"\r\n") else lines + b"\r\n"
