"""Refusals, cuts, stalls and garbage at every stage of the SMTP dialogue, each with its defined outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from connectors.providers.model import Answer, Outcome
from tests.integration.providers.rig import MAILBOX, Rig, message, rig, send_once

ACCEPTED, RETRY, REJECTED, UNKNOWN = Outcome.ACCEPTED, Outcome.RETRY, Outcome.REJECTED, Outcome.UNKNOWN

SESSION = ("greeting", "ehlo", "auth")
STAGES = (*SESSION, "mail", "rcpt", "data", "content")
REFUSALS = [
    *((stage, code, RETRY, True) for stage in SESSION for code in (421, 451, 454, 500, 535, 550, 554)),
    ("mail", 421, RETRY, True),
    ("mail", 451, RETRY, True),
    ("mail", 550, RETRY, True),
    ("mail", 552, REJECTED, False),
    ("rcpt", 421, RETRY, True),
    ("rcpt", 450, RETRY, False),
    ("rcpt", 452, RETRY, False),
    ("rcpt", 530, RETRY, True),
    ("rcpt", 550, REJECTED, False),
    ("rcpt", 553, REJECTED, False),
    ("data", 421, RETRY, True),
    ("data", 451, RETRY, False),
    ("data", 554, REJECTED, False),
    ("content", 421, RETRY, True),
    ("content", 451, RETRY, False),
    ("content", 452, RETRY, False),
    ("content", 552, REJECTED, False),
    ("content", 554, REJECTED, False),
]


async def _told(one: Rig, **fault: Any) -> tuple[Answer, Answer]:
    """The answer while the fault is in force, and the next message's after it."""
    one.tell(channel="email", **fault)
    answer = await one.send_email(timeout_s=0.4 if fault["kind"] == "stall" else 5)
    one.providers.faults.clear()
    return answer, await one.send_email("m2")


@pytest.mark.parametrize(("stage", "code", "outcome", "systematic"), REFUSALS)
def test_each_refusal_has_its_outcome(
    stage: str, code: int, outcome: Outcome, systematic: bool, tmp_path: Path
) -> None:
    async def scenario() -> tuple[Answer, Answer, Rig]:
        async with rig(tmp_path) as one:
            return *await _told(one, kind="status", stage=stage, status=code), one

    answer, next_one, one = asyncio.run(scenario())
    assert (answer.outcome, answer.status, answer.systematic) == (outcome, code, systematic)
    assert next_one.outcome is ACCEPTED
    assert [arrival["delivery"] for arrival in one.arrived] == ["m2"]


@pytest.mark.parametrize("kind", ["cut", "garbage", "stall"])
@pytest.mark.parametrize("stage", STAGES)
def test_without_a_reply_only_the_content_leaves_a_doubt(stage: str, kind: str, tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with rig(tmp_path) as one:
            return await _told(one, kind=kind, stage=stage)

    answer, next_one = asyncio.run(scenario())
    assert answer.outcome is (UNKNOWN if stage == "content" else RETRY)
    assert answer.systematic
    assert answer.status is None
    assert next_one.outcome is ACCEPTED


@pytest.mark.parametrize("kind", ["cut", "garbage", "nonsense"])
def test_taken_and_then_cut_is_resent_under_the_same_message_id(kind: str, tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Answer, Rig]:
        async with rig(tmp_path) as one:
            one.tell(kind=kind, channel="email", accepted=True, times=1)
            return await one.send_email(), await one.send_email(), one

    cut, again, one = asyncio.run(scenario())
    assert (cut.outcome, again.outcome) == (UNKNOWN, ACCEPTED)
    [arrival] = one.arrived
    assert (arrival["reference"], arrival["repeats"]) == (again.provider_ref, 1)
    assert again.provider_ref == "m1@loans.example"


@pytest.mark.parametrize("stage", ["mail", "rcpt", "data", "content"])
def test_a_refusal_costs_no_connection(stage: str, tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            await one.send_email("m0")
            one.tell(kind="status", channel="email", stage=stage, status=451, times=1)
            await one.send_email()
            one.tell(kind="status", channel="email", stage="greeting", status=554)
            return await one.send_email("m2")

    assert asyncio.run(scenario()).outcome is ACCEPTED, "no new connection was needed"


@pytest.mark.parametrize("fault", [{"kind": "cut"}, {"kind": "status", "status": 421}], ids=str)
def test_a_kept_connection_that_ended_is_replaced_unnoticed(fault: dict[str, Any], tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Rig]:
        async with rig(tmp_path) as one:
            await one.send_email()
            one.tell(channel="email", stage="mail", times=1, **fault)
            return await one.send_email("m2"), one

    answer, one = asyncio.run(scenario())
    assert answer.outcome is ACCEPTED
    assert one.providers.faults.taken == 1


def test_nobody_there_is_a_retry(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            return await send_once(one.mail_account, message("email", "m1"), port=9)

    answer = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic) == (RETRY, True)


def test_a_name_that_leads_inside_is_not_called(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            inside = {"host": "localhost", "allow_loopback": False}
            return await send_once(one.mail_account, message("email", "m1"), **inside)

    answer = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic) == (RETRY, True)
    assert "may reach" in str(answer.error)


def test_a_wrong_password_is_the_accounts_fault_and_in_no_answer(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            return await send_once(
                one.mail_account, message("email", "m1"), password=SecretStr("wrong-secret")
            )

    answer = asyncio.run(scenario())
    assert (answer.outcome, answer.status, answer.systematic) == (RETRY, 535, True)
    assert "wrong-secret" not in repr(answer)


def test_many_at_once_share_few_connections(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Answer], Rig]:
        async with rig(tmp_path) as one:
            answers = await asyncio.gather(*(one.send_email(f"m{number}") for number in range(200)))
            return list(answers), one

    answers, one = asyncio.run(scenario())
    assert {answer.outcome for answer in answers} == {ACCEPTED}
    assert len(one.arrived) == 200


def test_who_finds_no_free_connection_in_time_tries_again_and_blames_nobody(tmp_path: Path) -> None:
    async def scenario() -> list[Answer]:
        async with rig(tmp_path) as one:
            one.tell(kind="stall", channel="email", stage="mail", seconds=2)
            calls = [one.send_email(f"m{number}", timeout_s=1.5) for number in range(16)]
            first = asyncio.gather(*calls)
            await asyncio.sleep(0)
            late = await one.send_email("late", timeout_s=0.3)
            await first
            return [late]

    [late] = asyncio.run(scenario())
    assert (late.outcome, late.systematic) == (RETRY, False)


def test_what_arrives_is_what_was_sent(tmp_path: Path) -> None:
    content = {
        "subject": "Señor, falta un paso\r\nBcc: everybody@example.org",
        "text": ".a line that begins with a dot\nünïcode and a very long line " + "x" * 2000 + "\n",
        "html": "<p>ünïcode</p>\n.\n<p>after a lone dot</p>\n",
    }

    async def scenario() -> list[dict[str, Any]]:
        async with rig(tmp_path) as one:
            answer = await one.send_email(content=content, address="ann@bücher.example")
            assert answer.outcome is ACCEPTED, (answer, one.providers.inbox.complaints)
            return one.arrived

    [arrival] = asyncio.run(scenario())
    received = arrival["content"]
    assert received["subject"] == "Señor, falta un paso Bcc: everybody@example.org"
    assert received["text"].splitlines() == content["text"].splitlines()
    assert received["html"].splitlines() == content["html"].splitlines()
    assert arrival["to"] == "ann@xn--bcher-kva.example"
    assert arrival["tenant"] == "acme"


def test_a_mailbox_beyond_ascii_goes_where_the_relay_takes_it(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Rig]:
        async with rig(tmp_path) as one:
            return await one.send_email(address="josé@example.org"), one

    answer, one = asyncio.run(scenario())
    assert answer.outcome is ACCEPTED
    assert one.arrived[0]["to"] == "josé@example.org"


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "nobody"},
        {"address": f"{MAILBOX}\r\nRCPT TO:<other@example.org>"},
        {"address": "a b@example.org"},
        {"address": "a@-example.org"},
        {"address": "a@" + "x" * 64 + ".org"},
        {"content": {"text": "no subject"}},
        {"content": {"subject": "no text", "text": " "}},
        {"content": {"subject": "s", "text": "t", "html": 3}},
    ],
    ids=str,
)
def test_what_cannot_be_said_is_rejected_without_a_call(wrong: dict[str, Any], tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Rig]:
        async with rig(tmp_path) as one:
            one.tell(kind="status", channel="email", stage="greeting", status=554)
            return await one.send_email(**wrong), one

    answer, one = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic, answer.status) == (REJECTED, False, None)
    assert one.providers.faults.taken == 0
