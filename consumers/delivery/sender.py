"""One asyncio loop in a thread of its own that calls providers.

It knows nothing of Postgres: jobs come in, answers go out. Who may have how many calls under way is the worker's
business, and so is what an answer means.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple

from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from connectors import failpoints, tracing
from connectors.failpoints import Failpoint
from connectors.logging import about, get_logger
from connectors.providers.model import Adapter, Answer, Message, Outcome
from connectors.tracing import Attribute, Work
from consumers.delivery.desks import Seat

_log = get_logger(__name__)

ENDS_WITHIN_S = 20.0
"""A call that is under way when the process stops has its time-out to end in, and a little more."""


class Job(NamedTuple):
    """A claimed delivery: what to send, and until when the call may begin (`time.monotonic`)."""

    message: Message
    token: str
    begin_before: float
    seat: Seat
    """The right to this call; given back with its answer."""


class Answered(NamedTuple):
    """What came of a job; `answer` is None when the lease was too old to begin the call. Times are real, in seconds
    since 1970.
    """

    job: Job
    answer: Answer | None
    began_at: float
    ended_at: float


class Sender:
    """A context manager; leaving it waits for the calls under way. `submit` may be called from any thread, and
    `answered` is called in the loop's thread: it must not wait.
    """

    def __init__(self, adapters: Sequence[Adapter], answered: Callable[[Answered], None]) -> None:
        self._adapters = adapters
        self._answered = answered
        self._tracer = tracing.tracer()
        self._loop = asyncio.new_event_loop()
        self._calls: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def __enter__(self) -> Sender:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Begin these calls, all at once."""
        if jobs:
            self._loop.call_soon_threadsafe(self._begin, jobs)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _begin(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            call = self._loop.create_task(self._call(job))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _call(self, job: Job) -> None:
        began = time.time()
        if time.monotonic() > job.begin_before:
            self._answered(Answered(job, None, began, began))
            return
        try:
            answer = await self._send(job)
            failpoints.reach(Failpoint.DELIVERY_CALLED)
        except Exception as error:  # noqa: BLE001 a defect of ours: adapters answer for all a provider does
            with about(tenant=job.message.tenant_id, traceparent=job.message.traceparent):
                _log.exception("adapter_failed", delivery=job.message.delivery_id)
            answer = Answer(Outcome.UNKNOWN, error=f"{type(error).__name__} in the adapter", systematic=True)
        self._answered(Answered(job, answer, began, time.time()))

    async def _send(self, job: Job) -> Answer:
        desk = job.seat.desk
        if self._tracer is None:
            return await desk.adapter.send(job.message, timeout_s=desk.account.timeout_s)
        return await _traced(self._tracer, job)

    async def _open(self) -> None:
        for adapter in self._adapters:
            await adapter.open()

    async def _finish(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls, timeout=ENDS_WITHIN_S)
        for call in list(self._calls):
            call.cancel()
        for adapter in self._adapters:
            await adapter.close()


async def _traced(tracer: Tracer, job: Job) -> Answer:
    """The call under a span of its own, which the provider is told instead of the append's: the trace is the same."""
    desk, message = job.seat.desk, job.message
    said = message_attributes(message) | {Attribute.ACCOUNT: desk.account.name}
    name = f"{Work.SEND} {message.channel}"
    span = tracing.begin(tracer, name, message.traceparent, SpanKind.CLIENT, said)
    try:
        answer = await desk.adapter.send(
            replace(message, traceparent=tracing.traceparent_of(span)), timeout_s=desk.account.timeout_s
        )
        tracing.say(span, {Attribute.OUTCOME: answer.outcome.value, Attribute.STATUS: answer.status})
        if answer.outcome is not Outcome.ACCEPTED:
            span.set_status(Status(StatusCode.ERROR, answer.error))
    except Exception as error:
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        raise
    else:
        return answer
    finally:
        span.end()


def message_attributes(message: Message) -> dict[Attribute, str | int | None]:
    """What a span says of a message."""
    return {
        Attribute.TENANT: message.tenant_id,
        Attribute.DELIVERY_ID: message.delivery_id,
        Attribute.ATTEMPT: message.attempt,
    }
