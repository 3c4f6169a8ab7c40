"""Every way the WhatsApp endpoint can answer, over the wire, with its defined outcome."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from connectors.providers.model import Answer, Outcome
from tests.integration.providers.rig import Rig, message, rig, send_once

ACCEPTED, RETRY, REJECTED, UNKNOWN = Outcome.ACCEPTED, Outcome.RETRY, Outcome.REJECTED, Outcome.UNKNOWN


@dataclass(frozen=True)
class Case:
    """What the provider does, and what that means."""

    fault: dict[str, Any]
    outcome: Outcome
    systematic: bool
    retry_after: timedelta | None = None

    def __str__(self) -> str:
        return "-".join(str(value) for value in self.fault.values())


def status(number: int, code: int | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "status", "status": number, "code": code, **more}


STATUSES = [
    Case(status(400), REJECTED, systematic=False),
    Case(status(401), RETRY, systematic=True),
    Case(status(402), RETRY, systematic=True),
    Case(status(403), RETRY, systematic=True),
    Case(status(404), RETRY, systematic=True),
    Case(status(408), RETRY, systematic=False),
    Case(status(409), RETRY, systematic=False),
    Case(status(410), REJECTED, systematic=False),
    Case(status(422), REJECTED, systematic=False),
    Case(status(425), RETRY, systematic=False),
    Case(status(429), RETRY, systematic=True),
    Case(status(429, retry_after="7"), RETRY, systematic=True, retry_after=timedelta(seconds=7)),
    Case(status(429, retry_after="soon"), RETRY, systematic=True),
    Case(status(500), RETRY, systematic=True),
    Case(status(502), UNKNOWN, systematic=True),
    Case(status(503), RETRY, systematic=True),
    Case(status(503, retry_after="120"), RETRY, systematic=True, retry_after=timedelta(minutes=2)),
    Case(status(504), UNKNOWN, systematic=True),
    Case(status(307), RETRY, systematic=True),
    Case(status(200), UNKNOWN, systematic=True),
    Case(status(204), UNKNOWN, systematic=True),
]
CODES = [
    Case(status(401, 190), RETRY, systematic=True),
    Case(status(400, 33), RETRY, systematic=True),
    Case(status(403, 131031), RETRY, systematic=True),
    Case(status(400, 130429), RETRY, systematic=True),
    Case(status(400, 131056), RETRY, systematic=False),
    Case(status(500, 131000), RETRY, systematic=True),
    Case(status(400, 131026), REJECTED, systematic=False),
    Case(status(400, 131047), REJECTED, systematic=False),
    Case(status(404, 132001), REJECTED, systematic=False),
    Case(status(500, 100), REJECTED, systematic=False),
    Case(status(400, 999999), REJECTED, systematic=False),
]
WIRE = [
    Case({"kind": "cut"}, UNKNOWN, systematic=True),
    Case({"kind": "cut", "accepted": True}, UNKNOWN, systematic=True),
    Case({"kind": "garbage"}, UNKNOWN, systematic=True),
    Case({"kind": "nonsense", "accepted": True}, UNKNOWN, systematic=True),
]


@pytest.mark.parametrize("case", [*STATUSES, *CODES, *WIRE], ids=str)
def test_each_answer_has_its_outcome(case: Case, tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with rig(tmp_path) as one:
            one.tell(**case.fault, times=1)
            return await one.send_whatsapp(), await one.send_whatsapp("w2")

    answer, next_one = asyncio.run(scenario())
    assert answer.outcome is case.outcome
    assert answer.systematic is case.systematic
    assert answer.retry_after == case.retry_after
    assert answer.status == (case.fault["status"] if case.fault["kind"] == "status" else answer.status)
    assert answer.error
    assert next_one.outcome is ACCEPTED, "what happened to one message must not cost the next"


def test_retry_after_may_be_a_date(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            at = datetime.now(UTC) + timedelta(seconds=90)
            one.tell(**status(429, retry_after=format_datetime(at, usegmt=True)))
            return await one.send_whatsapp()

    answer = asyncio.run(scenario())
    assert answer.retry_after is not None
    assert timedelta(seconds=80) < answer.retry_after <= timedelta(seconds=90)


def test_a_stall_is_given_up_in_time_and_its_outcome_unknown(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, float]:
        async with rig(tmp_path) as one:
            one.tell(kind="stall", seconds=30)
            began = asyncio.get_running_loop().time()
            answer = await one.send_whatsapp(timeout_s=0.3)
            return answer, asyncio.get_running_loop().time() - began

    answer, took = asyncio.run(scenario())
    assert answer.outcome is UNKNOWN
    assert answer.systematic
    assert took < 3


def test_nobody_there_is_a_retry_for_nothing_was_sent(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            return await send_once(
                one.whatsapp_account, message("whatsapp", "w1"), base_url="http://127.0.0.1:9"
            )

    answer = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic, answer.status) == (RETRY, True, None)


def test_a_name_that_leads_inside_is_not_called(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, int]:
        async with rig(tmp_path) as one:
            url = f"http://localhost:{one.providers.http_port}"
            inside = {"base_url": url, "allow_loopback": False}
            answer = await send_once(one.whatsapp_account, message("whatsapp", "w1"), **inside)
            return answer, len(one.arrived)

    answer, arrived = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic) == (RETRY, True)
    assert arrived == 0


def test_the_same_key_is_one_effect_with_one_reference(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Answer, Rig]:
        async with rig(tmp_path) as one:
            one.tell(kind="cut", accepted=True, times=1)
            first = await one.send_whatsapp()
            return first, await one.send_whatsapp(), one

    cut, again, one = asyncio.run(scenario())
    assert (cut.outcome, again.outcome) == (UNKNOWN, ACCEPTED)
    [arrival] = one.arrived
    assert (arrival["reference"], arrival["repeats"]) == (again.provider_ref, 1)


def test_the_same_key_with_another_text_is_refused(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Rig]:
        async with rig(tmp_path) as one:
            await one.send_whatsapp()
            return await one.send_whatsapp(content={"text": "Something else."}), one

    answer, one = asyncio.run(scenario())
    assert (answer.outcome, answer.status) == (REJECTED, 422)
    assert one.providers.inbox.counts["key_reused"] == 1


def test_what_arrives_is_what_was_sent(tmp_path: Path) -> None:
    template = {"name": "collect_1", "language": "pt_BR", "parameters": ["Ana", "R$ 10,00"]}

    async def scenario() -> list[dict[str, object]]:
        async with rig(tmp_path) as one:
            await one.send_whatsapp(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
            answer = await one.send_whatsapp("w2", content={"template": template})
            assert answer.outcome is ACCEPTED, answer
            return one.arrived

    text, filled = asyncio.run(scenario())
    assert text["tenant"] == "acme"
    assert text["traceparent"] == "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert text["content"] == {"text": {"preview_url": False, "body": "One step left."}}
    parameters = [{"type": "text", "text": value} for value in template["parameters"]]
    assert filled["content"] == {
        "template": {
            "name": "collect_1",
            "language": {"code": "pt_BR"},
            "components": [{"type": "body", "parameters": parameters}],
        }
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "0612345678"},
        {"address": "+31612345678\r\n"},
        {"content": {}},
        {"content": {"text": ""}},
        {"content": {"text": "x" * 4097}},
        {"content": {"template": {"name": "a", "language": "en", "parameters": "no list"}}},
    ],
    ids=str,
)
def test_what_cannot_be_said_is_rejected_without_a_call(wrong: dict[str, Any], tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Rig]:
        async with rig(tmp_path) as one:
            return await one.send_whatsapp(**wrong), one

    answer, one = asyncio.run(scenario())
    assert (answer.outcome, answer.systematic, answer.status) == (REJECTED, False, None)
    assert not one.arrived
    assert not one.providers.inbox.complaints


def test_a_fault_of_one_tenant_leaves_the_others_alone(tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, Answer]:
        async with rig(tmp_path) as one:
            one.tell(**status(503), tenant="acme")
            return await one.send_whatsapp(), await one.send_whatsapp("w2", tenant_id="other")

    acme, other = asyncio.run(scenario())
    assert (acme.outcome, other.outcome) == (RETRY, ACCEPTED)


def test_a_wrong_token_is_the_accounts_fault_and_in_no_answer(tmp_path: Path) -> None:
    async def scenario() -> Answer:
        async with rig(tmp_path) as one:
            return await send_once(
                one.whatsapp_account, message("whatsapp", "w1"), token=SecretStr("wrong-secret")
            )

    answer = asyncio.run(scenario())
    assert (answer.outcome, answer.status, answer.systematic) == (RETRY, 401, True)
    assert "wrong-secret" not in repr(answer)
