"""A call given up at any moment leaves no connection behind and costs the next message nothing."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import psutil
import pytest

from connectors.providers.model import Answer, Outcome
from tests.integration.providers.rig import message, rig

STEPS = 60
STEP_S = 0.0002


@pytest.mark.parametrize("channel", ["whatsapp", "email"])
def test_a_cancelled_call_leaves_nothing(channel: str, tmp_path: Path) -> None:
    async def scenario() -> tuple[Answer, int]:
        async with rig(tmp_path) as one:
            adapter = one.whatsapp if channel == "whatsapp" else one.email
            before = _connections()
            for step in range(STEPS):
                call = asyncio.create_task(adapter.send(message(channel, f"c{step}"), timeout_s=5))
                await asyncio.sleep(step * STEP_S)
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await call
            answer = await adapter.send(message(channel, "last"), timeout_s=5)
            await adapter.close()
            deadline = asyncio.get_running_loop().time() + 5
            while (left := _connections() - before) > 0 and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 -- sockets close unheard
                await asyncio.sleep(0.01)
            return answer, left

    answer, left = asyncio.run(scenario())
    assert answer.outcome is Outcome.ACCEPTED
    assert left == 0


def _connections() -> int:
    return len(psutil.Process().net_connections("tcp"))
