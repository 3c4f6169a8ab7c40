"""The accounts file: typed, complete in its complaints, and silent about secrets."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from connectors.providers.accounts import Accounts, AccountsError, SmtpAccount, WhatsAppAccount, load_accounts
from connectors.providers.adapters import adapter_for
from connectors.providers.model import after_unknown

WHATSAPP = """\
[wa]
channel = "whatsapp"
phone_number_id = "106540352242922"
token = "a-secret"
"""
EMAIL = """\
[mail]
channel = "email"
host = "smtp.example.com"
username = "tellonce"
password = "b-secret"
from_address = "hello@example.com"
"""


def _load(folder: Path, text: str) -> Accounts:
    path = folder / "accounts.toml"
    path.write_text(text, encoding="utf-8")
    return load_accounts(path)


def test_no_file_is_no_accounts() -> None:
    assert load_accounts(None).choose("email", "acme") is None


def test_both_channels_with_what_nobody_has_to_say(tmp_path: Path) -> None:
    accounts = _load(tmp_path, WHATSAPP + EMAIL)
    whatsapp, mail = accounts.by_name["wa"], accounts.by_name["mail"]
    assert isinstance(whatsapp, WhatsAppAccount)
    assert whatsapp.messages_url == "https://graph.facebook.com/v23.0/106540352242922/messages"
    assert (whatsapp.in_flight, whatsapp.tenant_in_flight) == (32, 16)
    assert isinstance(mail, SmtpAccount)
    assert (mail.port, mail.security, mail.domain) == (587, "starttls", "example.com")


def test_secrets_show_nowhere(tmp_path: Path) -> None:
    accounts = _load(tmp_path, WHATSAPP + EMAIL)
    assert "secret" not in repr(accounts)
    assert "secret" not in str(accounts)


def test_secrets_from_the_environment_and_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WA_TOKEN", "from-env")
    (tmp_path / "password").write_text("from-file\n", encoding="utf-8")
    text = WHATSAPP.replace('"a-secret"', '{ env = "WA_TOKEN" }') + EMAIL.replace(
        '"b-secret"', '{ file = "password" }'
    )
    accounts = _load(tmp_path, text)
    whatsapp, mail = accounts.by_name["wa"], accounts.by_name["mail"]
    assert isinstance(whatsapp, WhatsAppAccount)
    assert isinstance(mail, SmtpAccount)
    assert whatsapp.token.get_secret_value() == "from-env"
    assert mail.password is not None
    assert mail.password.get_secret_value() == "from-file"


def test_a_tenants_own_account_comes_before_the_shared_one(tmp_path: Path) -> None:
    own = EMAIL.replace("[mail]", "[mail-acme]") + 'tenants = ["acme"]\n'
    accounts = _load(tmp_path, EMAIL + own)
    chosen = [accounts.choose("email", tenant) for tenant in ("acme", "other")]
    assert [account.name for account in chosen if account] == ["mail-acme", "mail"]
    assert accounts.choose("whatsapp", "acme") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[wa", "accounts.toml"),
        ("wa = 3", "not a table"),
        ("[wa]\nchannel = 'pigeon'", "channel"),
        (WHATSAPP + "colour = 1\n", "colour"),
        (WHATSAPP.replace("phone_number_id", "phone"), "phone_number_id"),
        (WHATSAPP.replace('"a-secret"', '""'), "token"),
        (WHATSAPP.replace('"a-secret"', '{ env = "NOT_SET_ANYWHERE" }'), "NOT_SET_ANYWHERE"),
        (WHATSAPP.replace('"a-secret"', '{ file = "missing" }'), "missing"),
        (WHATSAPP.replace('"a-secret"', "3"), "token"),
        (WHATSAPP + 'base_url = "http://graph.facebook.com"\n', "not https"),
        (WHATSAPP + 'base_url = "https://10.0.0.1"\n', "10.0.0.1"),
        (WHATSAPP + "tenant_share = 0\n", "tenant_share"),
        (EMAIL + 'security = "none"\n', "loopback"),
        (EMAIL + 'from_name = "A\\nBcc: x@example.org"\n', "from_name"),
        (EMAIL.replace("hello@example.com", "hello"), "from_address"),
        (EMAIL.replace("smtp.example.com", "192.168.0.1"), "192.168.0.1"),
        (EMAIL.replace('username = "tellonce"\n', ""), "come together"),
        (WHATSAPP + WHATSAPP.replace("[wa]", "[wb]"), "both for every tenant"),
        (WHATSAPP.replace("[wa]", '["WA main"]'), "name"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(AccountsError) as caught:
        _load(tmp_path, text)
    assert says in str(caught.value)
    assert "-secret" not in str(caught.value)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(AccountsError, match="No such file"):
        load_accounts(tmp_path / "none.toml")


def test_unknown_outcomes_are_resent_while_keys_are_remembered_and_then_as_the_channel_bears(
    tmp_path: Path,
) -> None:
    accounts = _load(tmp_path, WHATSAPP + 'remembers_keys_for = "P1D"\n' + EMAIL)
    whatsapp, mail = (adapter_for(accounts.by_name[name]) for name in ("wa", "mail"))
    assert after_unknown(whatsapp, timedelta(hours=23)) == "resend"
    assert after_unknown(whatsapp, timedelta(hours=24)) == "hold"
    assert after_unknown(mail, timedelta()) == "resend"
    plain = adapter_for(_load(tmp_path, WHATSAPP).by_name["wa"])
    assert after_unknown(plain, timedelta()) == "hold"
