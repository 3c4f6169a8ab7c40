"""A mail server that delivers to nobody: it checks, keeps and shows what it is given."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from typing import Any, AnyStr

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session, TLSSetupException

from deploy.providers.faults import Fault, Faults, SmtpStage
from deploy.providers.inbox import Inbox, KeyReusedError

REQUIRED = ("From", "To", "Subject", "Date", "Message-ID")
TOLD = "told to misbehave"

logging.getLogger("mail.log").setLevel(
    logging.ERROR
)  # aiosmtpd warns of its own deprecations with every login


class MailSink(SMTP):
    """One connection."""

    def __init__(
        self,
        inbox: Inbox,
        faults: Faults,
        *,
        username: str,
        password: str,
        tls: ssl.SSLContext | None,
        open_lines: set[MailSink],
    ) -> None:
        """`open_lines`: where it is found while its connection stands."""
        self._open_lines = open_lines
        self._inbox = inbox
        self._faults = faults
        self._login = (username.encode(), password.encode())
        super().__init__(
            self,
            hostname="mail.localhost",
            ident="local mail sink",
            enable_SMTPUTF8=True,
            tls_context=tls,
            require_starttls=tls is not None,
            auth_require_tls=tls is not None,
            authenticator=self._login_is_right,
            loop=asyncio.get_running_loop(),
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._open_lines.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._open_lines.discard(self)
        super().connection_lost(error)

    async def handle_exception(self, error: Exception) -> str:
        """A dialogue that broke, such as a client that did not like our certificate. The server asks its handler,
        which is itself: without an answer here it would ask for ever.
        """
        if isinstance(error, TLSSetupException) and self.transport is not None:
            self.transport.close()
        return f"451 {type(error).__name__}"

    def _login_is_right(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, given: Any
    ) -> AuthResult:
        right = isinstance(given, LoginPassword) and (given.login, given.password) == self._login
        if not right:
            self._inbox.complain("email", "wrong user or password")
        return AuthResult(success=right, handled=False)

    async def _handle_client(self) -> None:
        if await self._goes_on("greeting"):
            await super()._handle_client()
        elif self.transport is not None:
            self.transport.close()

    async def smtp_EHLO(self, hostname: str) -> None:  # noqa: N802 aiosmtpd finds commands by these names
        if await self._goes_on("ehlo"):
            await super().smtp_EHLO(hostname)

    async def smtp_HELO(self, hostname: str) -> None:  # noqa: N802 as above
        if await self._goes_on("ehlo"):
            await super().smtp_HELO(hostname)

    async def smtp_STARTTLS(self, arg: str) -> None:  # noqa: N802 as above
        if await self._goes_on("starttls"):
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg: str) -> None:  # noqa: N802 as above
        if await self._goes_on("auth"):
            await super().smtp_AUTH(arg)

    async def smtp_MAIL(self, arg: str | None) -> None:  # noqa: N802
        if self.session is None or not self.session.authenticated:
            self._inbox.complain("email", "MAIL before AUTH")
            await self.push("530 5.7.0 Authentication required")
        elif await self._goes_on("mail"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg: str | None) -> None:  # noqa: N802
        if await self._goes_on("rcpt", to=arg):
            await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        recipients = self.envelope.rcpt_tos if self.envelope is not None else []
        if await self._goes_on("data", to=",".join(recipients)):
            await super().smtp_DATA(arg)

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str | None:  # noqa: N802
        """The whole content is there: check, take, answer; or misbehave as told."""
        raw = envelope.original_content or b""
        mail = message_from_bytes(raw)
        if wrong := _wrong(mail, envelope, raw):
            self._inbox.complain("email", wrong)
            return f"554 5.6.0 {wrong}"
        tenant = _tenant(mail)
        fault = self._faults.take("email", tenant=tenant, to=",".join(envelope.rcpt_tos))
        if fault is not None and not fault.accepted and not await self._misbehaves(fault):
            return None
        key = str(mail["Message-ID"]).strip("<>")
        try:
            arrival = self._inbox.accept(
                "email",
                key=key,
                tenant=tenant,
                delivery=key.partition("@")[0],
                to=",".join(envelope.rcpt_tos),
                content=_content(mail),
                traceparent=mail["Traceparent"],
                same=_same(mail),
                reference=key,
            )
        except KeyReusedError:
            return "554 5.6.0 the Message-ID was used for another message"
        if fault is not None and fault.accepted and not await self._misbehaves(fault):
            return None
        return f"250 2.0.0 OK: queued as {arrival.number}"

    async def _goes_on(self, stage: SmtpStage, to: str | None = None) -> bool:
        fault = self._faults.take("email", stage=stage, to=to)
        return fault is None or await self._misbehaves(fault)

    async def _misbehaves(self, fault: Fault) -> bool:
        """Whether the dialogue goes on as if nothing had been."""
        match fault.kind:
            case "status":
                await self.push(f"{fault.status} {TOLD}")
                if fault.status == 421 and self.transport is not None:
                    self.transport.close()
            case "stall":
                await asyncio.sleep(fault.seconds)
                return True
            case "garbage":
                await self.push("\x00\x7f no SMTP at all")
            case "nonsense":
                await self.push(f"299 {TOLD}" if fault.stage != "content" else f"399 {TOLD}")
            case "cut":
                if isinstance(self.transport, asyncio.WriteTransport):
                    self.transport.abort()
        return False

    async def push(self, status: AnyStr | None) -> None:
        """None: the answer was given, or there is nobody to give it to."""
        if status is not None and self.transport is not None and not self.transport.is_closing():
            await super().push(status)


def _wrong(mail: Message, envelope: Envelope, raw: bytes) -> str | None:
    """What a careful receiver would hold against the mail."""
    for header in REQUIRED:
        if len(mail.get_all(header, [])) != 1:
            return f"not exactly one {header}"
    joined = raw.replace(b"\r\n", b"")
    if b"\r" in joined or b"\n" in joined:
        return "a lone CR or LF"
    if not str(mail["Message-ID"]).startswith("<") or "@" not in str(mail["Message-ID"]):
        return "Message-ID is not <…@…>"
    if len(envelope.rcpt_tos) != 1:
        return "not exactly one recipient"
    if mail.get_content_type() == "multipart/alternative":
        kinds = [part.get_content_type() for part in _texts(mail)]
        if kinds != ["text/plain", "text/html"]:
            return f"alternatives are {', '.join(kinds)}, not text then HTML"
    elif mail.get_content_type() != "text/plain":
        return f"{mail.get_content_type()} without a text beside it"
    return None


def _tenant(mail: Message) -> str:
    parts = str(mail.get("Feedback-ID", "")).split(":")
    return parts[1] if len(parts) == 4 else ""


def _content(mail: Message) -> dict[str, object]:
    content: dict[str, object] = {"subject": str(make_header(decode_header(mail["Subject"])))}
    for part in _texts(mail):
        body = part.get_payload(decode=True)
        name = "html" if part.get_content_type() == "text/html" else "text"
        content[name] = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
    return content


def _texts(mail: Message) -> list[Message]:
    return [part for part in mail.walk() if not part.is_multipart()]


def _same(mail: Message) -> bytes:
    """What two attempts at one delivery share: everything but the date."""
    digest = hashlib.sha256()
    for header in ("From", "To", "Subject", "Message-ID"):
        digest.update(f"{header}: {mail[header]}\n".encode("utf-8", "surrogateescape"))
    for part in _texts(mail):
        payload = part.get_payload(decode=True)
        digest.update(payload if isinstance(payload, bytes) else b"")
    return digest.digest()
