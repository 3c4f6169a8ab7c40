"""A mail on the wire: the same at every attempt, plain at every relay, and no way out of a header or the content."""

from __future__ import annotations

from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from connectors.providers.accounts import SmtpAccount
from connectors.providers.mail import Mail, build
from connectors.providers.model import Message

ACCOUNT = SmtpAccount(
    name="mail",
    channel="email",
    host="smtp.example.com",
    username="u",
    password=SecretStr("p"),
    from_address="hello@example.com",
    from_name="Exámple, Loans",
    reply_to="desk@example.com",
)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
texts = st.text(min_size=1, max_size=300).filter(lambda text: bool(text.strip()))


def _mail(at: datetime = AT, **other: Any) -> Mail:
    given_content = other.pop("content", {"subject": "s", "text": "t", "html": "<p>h</p>"})
    sent = Message(
        **{
            "delivery_id": "d1",
            "idempotency_key": "key-1",
            "tenant_id": "acme",
            "kind": "collect",
            "channel": "email",
            "address": "ann@example.org",
            "content": given_content,
            **other,
        }
    )
    return build(sent, ACCOUNT, at)


def test_two_attempts_differ_in_their_date_alone() -> None:
    first, second = _mail(attempt=1), _mail(AT.replace(hour=13), attempt=2)
    assert first.message_id == second.message_id == "key-1@example.com"
    assert [
        pair for pair in zip(first.content.split(b"\r\n"), second.content.split(b"\r\n"), strict=True)
        if pair[0] != pair[1]
    ] == [(b"Date: Sun, 01 Mar 2026 12:00:00 +0000", b"Date: Sun, 01 Mar 2026 13:00:00 +0000")]  # fmt: skip


def test_a_key_that_no_message_id_can_hold_is_hashed() -> None:
    assert _mail(idempotency_key="a key\r\nwith lines").message_id.partition("@")[0].isalnum()


def test_the_headers_a_receiver_wants() -> None:
    mail = message_from_bytes(_mail(traceparent="00-ab-cd-01").content, policy=default)
    assert str(mail["From"]) == '"Exámple, Loans" <hello@example.com>'
    assert mail["Reply-To"] == "desk@example.com"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Feedback-ID"] == "collect:acme:email:tellonce"
    assert mail["Traceparent"] == "00-ab-cd-01"
    assert not mail.defects


@given(subject=texts, text=texts, html=texts)
def test_whatever_is_said_stays_in_its_place(subject: str, text: str, html: str) -> None:
    content = _mail(content={"subject": subject, "text": text, "html": html}).content
    lines = content.split(b"\r\n")
    assert content.endswith(b"\r\n.\r\n")
    assert lines.count(b".") == 1, "one end of content"
    assert all(b"\r" not in line and b"\n" not in line for line in lines)
    assert all(len(line) <= 998 and line.isascii() for line in lines)
    mail = message_from_bytes(content.removesuffix(b".\r\n"))
    assert set(mail.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Feedback-ID", "MIME-Version",
        "Reply-To", "Content-Type",
    }  # fmt: skip
    parts = [part.get_content_type() for part in mail.walk()]
    assert parts == ["multipart/alternative", "text/plain", "text/html"]


@given(
    text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), min_size=1).filter(str.strip)
)
def test_the_text_arrives_as_it_was(text: str) -> None:
    content = _mail(content={"subject": "s", "text": text}).content.removesuffix(b".\r\n")
    unstuffed = b"\r\n".join(line[1:] if line.startswith(b".") else line for line in content.split(b"\r\n"))
    body = message_from_bytes(unstuffed).get_payload(decode=True)
    assert isinstance(body, bytes)
    assert body.decode().replace("\r\n", "\n").rstrip("\n") == text.rstrip("\n")
