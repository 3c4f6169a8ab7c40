"""Messages to WhatsApp through Meta's Cloud API."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

import aiohttp

from connectors.providers.accounts import WhatsAppAccount
from connectors.providers.cloud_api import read_answer, request_body
from connectors.providers.model import Answer, ContentError, Message, OnUnknown, Outcome, told
from connectors.providers.vetting import VettedResolver

CONNECT_WITHIN_S: Final = 5.0
"""Name, TCP and TLS; a provider that cannot do that in 5 s is away, and nothing has been sent."""
KEEP_IDLE_S: Final = 15.0
"""Shorter than any server's: one that closes a connection as we write leaves an unknown outcome."""
MOST_ANSWER_BYTES: Final = 64 * 1024
"""A documented answer has some hundred; whoever sends more is not read to the end."""


class WhatsAppAdapter:
    """One phone number, over keep-alive connections, at most `in_flight` of them."""

    channel = "whatsapp"
    on_unknown: OnUnknown = "hold"
    """A duplicate is worse than a question to an operator: people answer these messages."""

    def __init__(self, account: WhatsAppAccount) -> None:
        self._account = account
        self._session: aiohttp.ClientSession | None = None

    @property
    def remembers_keys_for(self) -> timedelta:
        return self._account.remembers_keys_for

    async def open(self) -> None:
        account = self._account
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=account.in_flight,
                keepalive_timeout=KEEP_IDLE_S,
                resolver=VettedResolver(account.reach),
                ssl=ssl.create_default_context(cafile=account.ca_file),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "Authorization": f"Bearer {account.token.get_secret_value()}",
                "Content-Type": "application/json",
                "User-Agent": "tellonce",
            },
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, message: Message, *, timeout_s: float) -> Answer:
        if self._session is None:
            raise RuntimeError("the adapter is not open")
        try:
            body = request_body(message)
        except ContentError as error:
            return Answer(Outcome.REJECTED, error=str(error))
        headers = {"Idempotency-Key": message.idempotency_key}
        if message.traceparent:
            headers["traceparent"] = message.traceparent
        try:
            async with self._session.post(
                self._account.messages_url,
                data=body,
                headers=headers,
                allow_redirects=False,  # the token is for this host alone
                timeout=aiohttp.ClientTimeout(total=timeout_s, connect=min(CONNECT_WITHIN_S, timeout_s / 2)),
            ) as response:
                said = await _bounded(response)
                return read_answer(response.status, response.headers, said, datetime.now(UTC))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            # Refused, unresolved, forbidden, a certificate that is not theirs, or no connection in time.
            return Answer(Outcome.RETRY, error=_about(error), systematic=True)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # From here on a connection stood: the request may have been read.
            return Answer(Outcome.UNKNOWN, error=_about(error), systematic=True)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The answer's body, or what came of one that is too long: no JSON, then."""
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_ANSWER_BYTES:
            response.close()
            break
    return body


def _about(error: BaseException) -> str:
    return told(f"{type(error).__name__}: {error}")
