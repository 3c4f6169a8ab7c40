"""The adapter of an account."""

from __future__ import annotations

from typing import assert_never

from connectors.providers.accounts import Account, SmtpAccount, WhatsAppAccount
from connectors.providers.model import Adapter
from connectors.providers.smtp import SmtpAdapter
from connectors.providers.whatsapp import WhatsAppAdapter


def adapter_for(account: Account) -> Adapter:
    """What sends for this account; to be opened in the loop that will use it."""
    match account:
        case WhatsAppAccount():
            return WhatsAppAdapter(account)
        case SmtpAccount():
            return SmtpAdapter(account)
        case _:
            assert_never(account)
