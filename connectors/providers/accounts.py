"""Our accounts at providers, from the TOML file that `TELLONCE_ACCOUNTS` names.

```toml
[whatsapp-main]
channel = "whatsapp"
phone_number_id = "106540352242922"
token = { env = "WHATSAPP_TOKEN" }      # or { file = "token.txt" }, beside this file; or the token itself

[mail-main]
channel = "email"
host = "smtp.example.com"
username = "tellonce"
password = { file = "/run/secrets/smtp" }
from_address = "hello@example.com"
from_name = "Example Loans"
```
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from connectors.providers.vetting import Reach, is_loopback, vet_host, vet_url


class AccountsError(Exception):
    """The accounts cannot be used: what is wrong and in which; never a secret."""


def _secret(value: object, info: ValidationInfo) -> object:
    """A secret given as itself, `{env = NAME}` or `{file = PATH}` (relative to the accounts file)."""
    match value:
        case {"env": str(name), **rest} if not rest:
            if not os.environ.get(name):
                raise ValueError(f"the environment has no {name}")
            return os.environ[name]
        case {"file": str(path), **rest} if not rest:
            folder = (info.context or {}).get("folder", Path())
            try:
                return Path(folder, path).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ValueError(f"cannot read {path}: {error.strerror}") from None
        case str() | SecretStr():
            return value
        case _:
            raise ValueError("a secret is a string, { env = NAME } or { file = PATH }")


Secret = Annotated[SecretStr, BeforeValidator(_secret), Field(min_length=1)]
OneLine = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]


class _Account(BaseModel):
    """What accounts have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    """The table's name in the file; kept with every delivery."""
    tenants: frozenset[str] = frozenset()
    """Those it is for; empty: all that have no account of their own on the channel."""
    in_flight: int = Field(default=32, ge=1, le=1000)
    """Calls at once, per process: what a provider is known to bear, not what we could do."""
    tenant_share: float = Field(default=0.5, gt=0, le=1)
    """Of `in_flight`, for one tenant: a backlog of one leaves room for the others."""
    timeout_s: float = Field(default=15.0, gt=0, le=45)
    """Of one call; well below the lease of 60 s, so that its outcome is recorded while it is still ours."""
    allow_loopback: bool = False
    allow_private: bool = False
    ca_file: Path | None = None
    """Certificates to trust instead of the system's: a relay with a private authority."""

    @property
    def reach(self) -> Reach:
        return Reach(loopback=self.allow_loopback, private=self.allow_private)

    @property
    def tenant_in_flight(self) -> int:
        """Calls at once for one tenant; at least one."""
        return max(1, int(self.in_flight * self.tenant_share))


class WhatsAppAccount(_Account):
    """A phone number on Meta's Cloud API, or a gateway that speaks it."""

    channel: Literal["whatsapp"]
    base_url: str = "https://graph.facebook.com"
    api_version: Annotated[str, Field(pattern=r"^v\d{1,3}\.\d$")] = "v23.0"
    phone_number_id: Annotated[str, Field(pattern=r"^\d{1,32}$")]
    token: Secret
    remembers_keys_for: timedelta = timedelta()
    """Meta knows no idempotency keys; a gateway in front of it may honour the header `Idempotency-Key`."""

    @model_validator(mode="after")
    def _vetted(self) -> Self:
        vet_url(self.base_url, self.reach)
        return self

    @property
    def messages_url(self) -> str:
        return f"{self.base_url.rstrip('/')}/{self.api_version}/{self.phone_number_id}/messages"


class SmtpAccount(_Account):
    """A mail server that relays for us."""

    channel: Literal["email"]
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]{1,253}$")]
    port: int = Field(default=587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`none` only to this machine: anywhere else it shows the password and the message."""
    username: OneLine | None = None
    password: Secret | None = None
    from_address: Annotated[OneLine, Field(pattern=r"^[\x21-\x7e]+@[A-Za-z0-9.-]+$")]
    from_name: OneLine = ""
    reply_to: Annotated[OneLine, Field(pattern=r"^[\x21-\x7e]+@[A-Za-z0-9.-]+$")] | None = None
    in_flight: int = Field(default=8, ge=1, le=100)
    """Connections at once: mail servers commonly allow 10 to 20 of one client."""

    @model_validator(mode="after")
    def _vetted(self) -> Self:
        vet_host(self.host, self.reach)
        if self.security == "none" and not (self.allow_loopback and is_loopback(self.host)):
            raise ValueError(f"security = none is for loopback with allow_loopback, not for {self.host}")
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password come together")
        return self

    @property
    def domain(self) -> str:
        """Ours: what follows the @ of senders and message ids."""
        return self.from_address.rpartition("@")[2]


Account = WhatsAppAccount | SmtpAccount
_READER: TypeAdapter[Account] = TypeAdapter(Annotated[Account, Field(discriminator="channel")])


@dataclass(frozen=True, slots=True)
class Accounts:
    """All accounts, by name."""

    by_name: Mapping[str, Account]

    def choose(self, channel: str, tenant_id: str) -> Account | None:
        """The tenant's own account on the channel, else the one for everybody; None: nobody can be told this way."""
        shared = None
        for account in self.by_name.values():
            if account.channel == channel:
                if tenant_id in account.tenants:
                    return account
                if not account.tenants:
                    shared = account
        return shared


def load_accounts(path: Path | None) -> Accounts:
    """The accounts of a file; none without a file. Raises `AccountsError`."""
    if path is None:
        return Accounts({})
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AccountsError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AccountsError(f"{path}: {error}") from error
    accounts = {name: _read(name, table, path) for name, table in tables.items()}
    _check_unambiguous(accounts, path)
    return Accounts(accounts)


def _read(name: str, table: object, path: Path) -> Account:
    if not isinstance(table, dict):
        raise AccountsError(f"{path}: {name} is not a table [{name}]")
    try:
        return _READER.validate_python({**table, "name": name}, context={"folder": path.parent})
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'][1:]) or 'account'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        )
        # Not chained: a traceback would print the validator's own words, and with them what it was given.
        raise AccountsError(f"{path}: [{name}] {wrong}") from None


def _check_unambiguous(accounts: Mapping[str, Account], path: Path) -> None:
    taken: dict[tuple[str, str | None], str] = {}
    for name, account in accounts.items():
        for tenant in account.tenants or (None,):
            other = taken.setdefault((account.channel, tenant), name)
            if other != name:
                whom = f"tenant {tenant}" if tenant else "every tenant"
                raise AccountsError(
                    f"{path}: [{other}] and [{name}] are both for {whom} on {account.channel}"
                )
