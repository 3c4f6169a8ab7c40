"""Both providers in one event loop, and the accounts that reach them."""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from deploy.providers.faults import Faults
from deploy.providers.inbox import Inbox
from deploy.providers.site import Site
from deploy.providers.smtp import MailSink
from deploy.providers.whatsapp import WhatsAppEndpoint

HOST = "127.0.0.1"
PHONE_NUMBER_ID = "106540352242922"
USERNAME = "tellonce"


@dataclass(frozen=True, slots=True)
class LocalProviders:
    """Running servers."""

    http_port: int
    smtp_port: int
    token: str = field(repr=False)
    password: str = field(repr=False)
    inbox: Inbox = field(repr=False)
    faults: Faults = field(repr=False)
    tls: bool = False

    @property
    def url(self) -> str:
        """The page; JSON and control beside it."""
        return f"{'https' if self.tls else 'http'}://{HOST}:{self.http_port}"

    def accounts_toml(self) -> str:
        """The file for `TELLONCE_ACCOUNTS`: one account on each channel, secrets among it."""
        return f"""\
[whatsapp-local]
channel = "whatsapp"
base_url = "{self.url}"
phone_number_id = "{PHONE_NUMBER_ID}"
token = "{self.token}"
remembers_keys_for = "P1D"
in_flight = 64
allow_loopback = true

[mail-local]
channel = "email"
host = "{HOST}"
port = {self.smtp_port}
security = "{"starttls" if self.tls else "none"}"
username = "{USERNAME}"
password = "{self.password}"
from_address = "hello@loans.example"
from_name = "Example Loans"
in_flight = 16
allow_loopback = true
"""


@asynccontextmanager
async def serve(
    *, http_port: int = 0, smtp_port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[LocalProviders]:
    """Serve on loopback until left; port 0 takes a free one. With a certificate: https, and STARTTLS required."""
    inbox, faults = Inbox(), Faults()
    token, password = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    endpoint = WhatsAppEndpoint(inbox, faults, phone_number_id=PHONE_NUMBER_ID, token=token)
    runner = web.AppRunner(Site(inbox, faults, endpoint).application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    open_lines: set[MailSink] = set()

    def sink() -> MailSink:
        return MailSink(inbox, faults, username=USERNAME, password=password, tls=tls, open_lines=open_lines)

    mail: asyncio.Server | None = None
    try:
        http = web.TCPSite(runner, HOST, http_port, ssl_context=tls)
        await http.start()
        mail = await asyncio.get_running_loop().create_server(sink, HOST, smtp_port)
        yield LocalProviders(
            http_port=runner.addresses[0][1],
            smtp_port=mail.sockets[0].getsockname()[1],
            token=token,
            password=password,
            inbox=inbox,
            faults=faults,
            tls=tls is not None,
        )
    finally:
        if mail is not None:
            mail.close()
        for line in list(open_lines):
            if line.transport is not None:
                line.transport.close()
        await runner.cleanup()


def run(
    stop: threading.Event,
    *,
    accounts: Path | None = None,
    http_port: int = 0,
    smtp_port: int = 0,
    ready: Callable[[LocalProviders], None] = lambda _providers: None,
) -> None:
    """Serve until asked to stop; writes the accounts file (mode 0600) before it says `ready`."""

    async def until_stopped() -> None:
        async with serve(http_port=http_port, smtp_port=smtp_port) as providers:
            if accounts is not None:
                _write_private(accounts, providers.accounts_toml())
            ready(providers)
            await asyncio.to_thread(stop.wait)

    asyncio.run(until_stopped())


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for nobody else's eyes at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
