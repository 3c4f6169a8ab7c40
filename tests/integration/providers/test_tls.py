"""Certificates: taken from the authority the account names, refused from any other, for both protocols."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from connectors.providers.model import Answer, Outcome
from deploy.providers.faults import Faults
from deploy.providers.inbox import Inbox
from deploy.providers.smtp import MailSink
from tests.integration.providers.rig import message, rig, send_once


@dataclass(frozen=True)
class Authority:
    """A certificate authority's file, and a server's context with a certificate it issued."""

    file: Path
    server: ssl.SSLContext


def authority(folder: Path, name: str = "127.0.0.1") -> Authority:
    made = trustme.CA()
    file = folder / f"{name}.pem"
    made.cert_pem.write_to_path(str(file))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.issue_cert(name).configure_cert(server)
    return Authority(file, server)


def _send(folder: Path, server: ssl.SSLContext, trusted: Path | None) -> tuple[list[Answer], int]:
    async def scenario() -> tuple[list[Answer], int]:
        async with rig(folder, tls=server, ca_file=trusted) as one:
            answers = [await one.send_whatsapp(), await one.send_email(), await one.send_email("m2")]
            return answers, len(one.arrived)

    return asyncio.run(scenario())


def test_over_tls_and_starttls_with_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    answers, arrived = _send(tmp_path, ours.server, ours.file)
    assert [answer.outcome for answer in answers] == [Outcome.ACCEPTED] * 3
    assert arrived == 3


def test_an_authority_that_nobody_named_is_a_systematic_retry(tmp_path: Path) -> None:
    answers, arrived = _send(tmp_path, authority(tmp_path).server, None)
    assert {(answer.outcome, answer.systematic) for answer in answers} == {(Outcome.RETRY, True)}
    assert all("ertificate" in str(answer.error) for answer in answers), answers
    assert arrived == 0


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    other = authority(tmp_path, "other.example")
    answers, arrived = _send(tmp_path, other.server, other.file)
    assert {(answer.outcome, answer.systematic) for answer in answers} == {(Outcome.RETRY, True)}
    assert arrived == 0


@pytest.mark.parametrize(
    "fault",
    [{"kind": "status", "status": code} for code in (421, 454, 501, 554)]
    + [{"kind": "cut"}, {"kind": "garbage"}, {"kind": "stall"}],
    ids=str,
)
def test_without_starttls_nothing_is_said(fault: dict[str, object], tmp_path: Path) -> None:
    ours = authority(tmp_path)

    async def scenario() -> tuple[Answer, int]:
        async with rig(tmp_path, tls=ours.server, ca_file=ours.file) as one:
            one.tell(channel="email", stage="starttls", **fault)
            return await one.send_email(timeout_s=0.5 if fault["kind"] == "stall" else 5), len(one.arrived)

    answer, arrived = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic) == (Outcome.RETRY, True)
    assert arrived == 0


def test_a_relay_that_offers_no_starttls_gets_neither_password_nor_message(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, int]:
        async with rig(tmp_path) as one:
            answer = await send_once(one.mail_account, message("email", "m1"), security="starttls")
            return answer, len(one.arrived)

    answer, arrived = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic) == (Outcome.RETRY, True)
    assert arrived == 0


def test_a_dialogue_that_breaks_is_answered_and_not_asked_about_for_ever() -> None:
    async def scenario() -> str:
        sink = MailSink(Inbox(), Faults(), username="u", password="p", tls=None, open_lines=set())
        return await sink.handle_exception(ConnectionResetError())

    assert asyncio.run(scenario()) == "451 ConnectionResetError"
