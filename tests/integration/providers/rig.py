"""Both adapters, open, against the local providers: the real protocols over loopback, nothing imitated between."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from connectors.providers.accounts import Account, Accounts, SmtpAccount, WhatsAppAccount, load_accounts
from connectors.providers.adapters import adapter_for
from connectors.providers.model import Answer, Message
from connectors.providers.smtp import SmtpAdapter
from connectors.providers.whatsapp import WhatsAppAdapter
from deploy.providers.faults import Fault
from deploy.providers.running import LocalProviders, serve

PHONE = "+31612345678"
MAILBOX = "ann@example.org"
PATIENCE_S = 5.0
EMAIL = {"subject": "Almost there", "text": "One step left.\n", "html": "<p>One step left.</p>"}
TEXT = {"text": "One step left."}


@dataclass(frozen=True, slots=True)
class Rig:
    """What a test calls and looks at."""

    providers: LocalProviders
    accounts: Accounts
    whatsapp: WhatsAppAdapter
    email: SmtpAdapter

    def tell(self, **fault: Any) -> None:
        self.providers.faults.tell(Fault.model_validate(fault))

    async def send_whatsapp(self, key: str = "w1", *, timeout_s: float = PATIENCE_S, **other: Any) -> Answer:
        return await self.whatsapp.send(message("whatsapp", key, **other), timeout_s=timeout_s)

    async def send_email(self, key: str = "m1", *, timeout_s: float = PATIENCE_S, **other: Any) -> Answer:
        return await self.email.send(message("email", key, **other), timeout_s=timeout_s)

    @property
    def whatsapp_account(self) -> Account:
        return self.accounts.by_name["whatsapp-local"]

    @property
    def mail_account(self) -> Account:
        return self.accounts.by_name["mail-local"]

    @property
    def arrived(self) -> list[dict[str, object]]:
        return self.providers.inbox.select()


def message(channel: str, key: str, **other: Any) -> Message:
    """A message that every provider takes, but for what the test says."""
    is_email = channel == "email"
    return Message(
        **{
            "delivery_id": key,
            "idempotency_key": key,
            "tenant_id": "acme",
            "kind": "collect",
            "channel": channel,
            "address": MAILBOX if is_email else PHONE,
            "content": EMAIL if is_email else TEXT,
            **other,
        }
    )


@asynccontextmanager
async def rig(
    folder: Path, *, tls: ssl.SSLContext | None = None, ca_file: Path | None = None
) -> AsyncIterator[Rig]:
    """Servers and adapters, closed again at the end."""
    async with serve(tls=tls) as providers:
        accounts = read_accounts(folder, providers, ca_file)
        whatsapp, email = accounts.by_name["whatsapp-local"], accounts.by_name["mail-local"]
        assert isinstance(whatsapp, WhatsAppAccount)
        assert isinstance(email, SmtpAccount)
        adapters = WhatsAppAdapter(whatsapp), SmtpAdapter(email)
        for adapter in adapters:
            await adapter.open()
        try:
            yield Rig(providers, accounts, *adapters)
        finally:
            for adapter in adapters:
                await adapter.close()


def read_accounts(folder: Path, providers: LocalProviders, ca_file: Path | None = None) -> Accounts:
    """The accounts as a process would read them."""
    text = providers.accounts_toml()
    if ca_file is not None:
        trusted = f"ca_file = {orjson.dumps(str(ca_file)).decode()}\nallow_loopback"
        text = text.replace("allow_loopback", trusted)
    path = folder / "accounts.toml"
    path.write_text(text, encoding="utf-8")
    return load_accounts(path)


async def send_once(account: Account, sent: Message, **changed: object) -> Answer:
    """Through an adapter of its own, for an account that differs in what is `changed`."""
    adapter = adapter_for(account.model_copy(update=changed))
    await adapter.open()
    try:
        return await adapter.send(sent, timeout_s=PATIENCE_S)
    finally:
        await adapter.close()
