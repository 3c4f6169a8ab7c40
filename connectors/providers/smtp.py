"""Email through a relay, over kept connections."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

from connectors.providers.accounts import SmtpAccount
from connectors.providers.mail import Mail, build
from connectors.providers.model import Answer, ContentError, Message, OnUnknown, Outcome
from connectors.providers.smtp_line import Line, StaleLineError
from connectors.providers.smtp_replies import cut

KEEP_IDLE_S: Final = 30.0
"""Servers close idle connections after one to five minutes, some with a 421 that is not meant for any message."""
MOST_PER_LINE: Final = 100
"""Messages over one connection, a common bound of relays."""


class SmtpAdapter:
    """One relay, over at most `in_flight` connections; who finds none free waits within its own time."""

    channel = "email"
    remembers_keys_for = timedelta()
    on_unknown: OnUnknown = "resend"
    """SMTP knows no keys; the same Message-ID lets receivers collapse the second one."""

    def __init__(self, account: SmtpAccount) -> None:
        self._account = account
        self._free = asyncio.Semaphore(account.in_flight)
        self._idle: list[Line] = []
        self._tls: ssl.SSLContext | None = None

    async def open(self) -> None:
        self._tls = ssl.create_default_context(cafile=self._account.ca_file)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(line.quit() for line in idle))

    async def send(self, message: Message, *, timeout_s: float) -> Answer:
        try:
            mail = build(message, self._account, datetime.now(UTC))
        except ContentError as error:
            return Answer(Outcome.REJECTED, error=str(error))
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                await self._free.acquire()
        except TimeoutError:
            return Answer(Outcome.RETRY, error="no connection was free in time")
        try:
            return await self._over_a_line(mail, deadline)
        finally:
            self._free.release()

    async def _over_a_line(self, mail: Mail, deadline: float) -> Answer:
        """Over a kept connection if one still stands, else over a new one."""
        while (line := self._kept()) is not None:
            try:
                return await self._over(line, mail, deadline)
            except StaleLineError:
                continue
        return await self._over(Line(self._account, self._context()), mail, deadline)

    async def _over(self, line: Line, mail: Mail, deadline: float) -> Answer:
        try:
            async with asyncio.timeout_at(deadline):
                answer = await line.deliver(mail)
        except TimeoutError:
            line.drop()
            return cut(line.stage, "no reply in time")
        except BaseException:  # cancelled, or stale: either way what is on this line is anybody's guess
            line.drop()
            raise
        if line.is_usable and line.messages < MOST_PER_LINE:
            self._idle.append(line)
        else:
            line.drop()
        return answer

    def _kept(self) -> Line | None:
        """The connection used last, for the others to grow old and go."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            line = self._idle.pop()
            if line.is_usable and now - line.used_at < KEEP_IDLE_S:
                return line
            line.drop()
        return None

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            raise RuntimeError("the adapter is not open")
        return self._tls
