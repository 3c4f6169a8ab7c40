"""One connection to a relay: its dialogue, a message at a time."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Final

import aiosmtplib

from connectors.providers.accounts import SmtpAccount
from connectors.providers.mail import Mail
from connectors.providers.model import Answer, Outcome
from connectors.providers.smtp_replies import CLOSING, Stage, cut, refused
from connectors.providers.vetting import resolve

CONNECT_WITHIN_S: Final = 10.0
"""Per address and step of the greeting; relays that check who calls take some seconds."""
QUIT_WITHIN_S: Final = 1.0
"""A courtesy: whoever does not answer it is left."""


class StaleLineError(Exception):
    """A kept connection ended before anything was said on it: another one will do."""


class Line:
    """Opened by its first message. `stage` says how far the message in hand has come."""

    def __init__(self, account: SmtpAccount, tls: ssl.SSLContext) -> None:
        self._account = account
        self._tls = tls
        self._client: aiosmtplib.SMTP | None = None
        self._refused = False
        self.stage = Stage.SESSION
        self.messages = 0
        self.used_at = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether another message may be tried on it."""
        return self._client is not None and self._client.is_connected

    async def deliver(self, mail: Mail) -> Answer:
        """One message. Raises `StaleLineError` only; whoever gives up waiting must `drop` the line."""
        kept = self._client is not None
        self.stage = Stage.SESSION
        try:
            client = self._client or await self._connect()
            if self._refused:  # what the refused message left behind; if the server is gone it shows here
                await client.rset()
                self._refused = False
            answer = await self._dialogue(client, mail)
        except aiosmtplib.SMTPResponseException as reply:
            if kept and (self.stage is Stage.SESSION or (self.stage is Stage.MAIL and reply.code == CLOSING)):
                raise StaleLineError from reply
            self._refused = True
            answer = refused(self.stage, reply.code, reply.message)
            if reply.code < 0:  # garbage: replies can no longer be told apart
                self.drop()
        except (aiosmtplib.SMTPException, OSError, UnicodeError) as error:
            if kept and self.stage in (Stage.SESSION, Stage.MAIL):
                raise StaleLineError from error
            self.drop()
            answer = cut(self.stage, f"{type(error).__name__}: {error}")
        self.messages += 1
        self.used_at = asyncio.get_running_loop().time()
        return answer

    def drop(self) -> None:
        """End the connection without a word."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def quit(self) -> None:
        """End the connection politely."""
        if self._client is not None and self._client.is_connected:
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                await self._client.quit(timeout=QUIT_WITHIN_S)
        self.drop()

    async def _connect(self) -> aiosmtplib.SMTP:
        account = self._account
        client = aiosmtplib.SMTP(
            hostname=account.host,
            sock=await self._socket(),
            local_hostname=account.domain,
            use_tls=account.security == "tls",
            start_tls=account.security == "starttls",
            tls_context=self._tls,
            timeout=CONNECT_WITHIN_S,
        )
        await client.connect()
        try:
            await self._log_in(client)
        except BaseException:
            client.close()
            raise
        client.timeout = None  # the message's own time is the caller's
        self._client = client
        return client

    async def _log_in(self, client: aiosmtplib.SMTP) -> None:
        """By one mechanism, once: to try the others with the same password is what gets an account locked."""
        account = self._account
        if account.username is None or account.password is None:
            return
        if client.is_ehlo_or_helo_needed:
            await client.ehlo()
        password = account.password.get_secret_value()
        if "plain" in client.server_auth_methods:
            await client.auth_plain(account.username, password)
        elif "login" in client.server_auth_methods:
            await client.auth_login(account.username, password)
        else:
            raise aiosmtplib.SMTPNotSupported("the relay offers neither AUTH PLAIN nor AUTH LOGIN")

    async def _socket(self) -> socket.socket:
        """A connection to the first vetted address that answers."""
        loop = asyncio.get_running_loop()
        last: OSError | None = None
        for found in await resolve(self._account.host, self._account.port, self._account.reach):
            sock = socket.socket(found["family"], socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await asyncio.wait_for(
                    loop.sock_connect(sock, (found["host"], found["port"])), CONNECT_WITHIN_S
                )
            except OSError as error:  # TimeoutError among them
                sock.close()
                last = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise last or OSError("no address")

    async def _dialogue(self, client: aiosmtplib.SMTP, mail: Mail) -> Answer:
        if mail.needs_utf8 and not client.supports_extension("smtputf8"):
            return Answer(Outcome.REJECTED, error="the relay takes no addresses beyond ASCII")
        encoding, options = ("utf-8", ["SMTPUTF8"]) if mail.needs_utf8 else ("ascii", None)
        self.stage = Stage.MAIL
        await client.mail(mail.sender, options=options, encoding=encoding)
        self.stage = Stage.RCPT
        await client.rcpt(mail.recipient, encoding=encoding)
        self.stage = Stage.DATA
        reply = await client.execute_command(b"DATA")
        if reply.code != aiosmtplib.SMTPStatus.start_input:
            raise aiosmtplib.SMTPDataError(reply.code, reply.message)
        protocol = client.protocol
        if protocol is None:
            raise aiosmtplib.SMTPServerDisconnected("the connection ended after DATA")
        # Written here and not by `client.data`, which does not tell a cut before the content from one after it.
        protocol.write(mail.content)
        self.stage = Stage.CONTENT
        reply = await protocol.read_response()
        if not 200 <= reply.code <= 299:
            raise aiosmtplib.SMTPDataError(reply.code, reply.message)
        return Answer(Outcome.ACCEPTED, status=reply.code, provider_ref=mail.message_id)
