"""The local providers check what they are given, show it, and are told what to do over HTTP."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from connectors.providers.accounts import load_accounts
from connectors.providers.model import Outcome
from tests.integration.providers.rig import TEXT, Rig, message, rig, send_once

GOOD: dict[str, Any] = {
    "messaging_product": "whatsapp",
    "to": "+31612345678",
    "type": "text",
    "text": {"body": "hi"},
}


def _with_http(folder: Path, body: Callable[[Rig, aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def scenario() -> Any:
        async with rig(folder) as one, aiohttp.ClientSession(one.providers.url) as http:
            return await body(one, http)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"messaging_product": None}, 131008),
        ({"to": "12"}, 131009),
        ({"type": "text", "text": {}}, 131008),
        ({"type": "text", "text": {"body": "x" * 4097}}, 131008),
        ({"type": "sticker"}, 131051),
        ({"type": "template", "template": {"name": "a"}}, 131008),
        ({"type": "template", "template": {"name": "a", "language": {"code": ""}}}, 131008),
        (
            {
                "type": "template",
                "template": {
                    "name": "a",
                    "language": {"code": "en"},
                    "components": [{"type": "body", "parameters": [{"type": "text", "text": "two\nlines"}]}],
                },
            },
            132012,
        ),
    ],
)
def test_the_whatsapp_endpoint_refuses_what_the_api_would(
    changed: dict[str, Any], code: int, tmp_path: Path
) -> None:
    async def body(one: Rig, http: aiohttp.ClientSession) -> Any:
        headers = {"Authorization": f"Bearer {one.providers.token}"}
        url = "/v23.0/106540352242922/messages"
        async with http.post(url, json=GOOD | changed, headers=headers) as response:
            return response.status, await response.json(), one

    status, said, one = _with_http(tmp_path, body)
    assert (status, said["error"]["code"]) == (400, code)
    assert one.providers.inbox.counts["refused"] == 1


def test_it_refuses_another_token_another_number_and_another_type(tmp_path: Path) -> None:
    async def body(one: Rig, http: aiohttp.ClientSession) -> Any:
        right = {"Authorization": f"Bearer {one.providers.token}"}
        ours, other = "/v23.0/106540352242922/messages", "/v23.0/1/messages"
        codes = []
        for url, headers, sent in (
            (ours, {}, {"json": GOOD}),
            (ours, {"Authorization": "Bearer no"}, {"json": GOOD}),
            (other, right, {"json": GOOD}),
            (ours, right, {"data": "to=1"}),
            (ours, right | {"Content-Type": "application/json"}, {"data": "{"}),
            (ours, right, {"json": [1]}),
        ):
            async with http.post(url, headers=headers, **sent) as response:
                codes.append((response.status, (await response.json())["error"]["code"]))
        return codes

    assert _with_http(tmp_path, body) == [
        (401, 190),
        (401, 190),
        (400, 33),
        (400, 100),
        (400, 100),
        (400, 100),
    ]


def test_what_arrived_shows_as_json_and_on_a_page_without_running_it(tmp_path: Path) -> None:
    async def body(one: Rig, http: aiohttp.ClientSession) -> Any:
        await one.send_whatsapp(content={"text": "<script>alert(1)</script>"})
        await one.send_email()
        await one.send_whatsapp("w2", tenant_id="other", content=TEXT)
        one.tell(kind="cut", tenant="nobody")
        async with http.get("/messages.json", params={"after": 1, "tenant": "acme"}) as response:
            messages = await response.json()
        async with http.get("/counts.json") as response:
            counts = await response.json()
        async with http.get("/") as response:
            return messages, counts, await response.text()

    messages, counts, page = _with_http(tmp_path, body)
    assert [(each["number"], each["channel"]) for each in messages] == [(2, "email")]
    assert (counts["accepted"], counts["tenants"]) == (3, {"acme": 2, "other": 1})
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "Almost there" in page
    assert "nobody" in page


def test_control_tells_faults_clears_them_and_forgets(tmp_path: Path) -> None:
    async def body(one: Rig, http: aiohttp.ClientSession) -> Any:
        async def control(**told: Any) -> Any:
            async with http.post("/control", json=told) as response:
                return response.status, await response.json()

        fault = {"kind": "status", "status": 429, "retry_after": "3", "tenant": "acme", "times": 2}
        told = await control(faults=[fault], honours_keys=False)
        first = await one.send_whatsapp()
        cleared = await control(clear=True)
        again = [await one.send_whatsapp(), await one.send_whatsapp()]
        twice = len(one.arrived)
        await control(forget=True)
        refused = await control(
            faults=[{"kind": "status", "channel": "email", "stage": "mail", "tenant": "a"}]
        )
        async with http.post("/control", data=b"{}", headers={"Content-Type": "text/plain"}) as response:
            return told, first, cleared, again, twice, len(one.arrived), refused[0], response.status

    told, first, cleared, again, twice, left, refused, plain = _with_http(tmp_path, body)
    assert told[1]["honours_keys"] is False
    assert told[1]["faults"][0]["left"] == 2
    assert (first.outcome, first.status) == (Outcome.RETRY, 429)
    assert cleared[1]["faults"] == []
    assert {answer.outcome for answer in again} == {Outcome.ACCEPTED}
    assert (twice, left) == (2, 0), "a provider that knows no keys shows both"
    assert (refused, plain) == (400, 415)


def test_the_process_writes_the_accounts_that_reach_it_and_ends_when_asked(tmp_path: Path) -> None:
    accounts = tmp_path / "new" / "accounts.toml"
    command = [sys.executable, "-m", "deploy.providers", "--accounts", str(accounts)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            ready = orjson.loads(process.stdout.readline())
            assert ready["url"].startswith("http://127.0.0.1:")
            assert stat.S_IMODE(accounts.stat().st_mode) == 0o600
            known = load_accounts(accounts)
            for channel in ("whatsapp", "email"):
                account = known.choose(channel, "acme")
                assert account is not None
                answer = asyncio.run(send_once(account, message(channel, "k1")))
                assert answer.outcome is Outcome.ACCEPTED
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 0
        finally:
            process.kill()
