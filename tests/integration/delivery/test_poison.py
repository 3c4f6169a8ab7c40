"""One delivery that fails whatever is tried: found, put on hold with what went wrong, and everything else goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from connectors.providers.model import Answer, Outcome
from consumers.delivery import operate
from consumers.delivery.sender import Answered, Job
from schemas.products.audience import Channel
from schemas.templates.rendered import Rendered, Text
from tests.integration.delivery.conftest import Bench, Rounds
from tests.integration.delivery.test_crashes import expire_lease

BAD = "loans.disbursed"


class Sabotaged:
    """A renderer that does something else for one kind."""

    def __init__(self, sound: Any, instead: Callable[[], Rendered]) -> None:
        self._sound = sound
        self._instead = instead

    def render(self, product: str, kind: str, *rest: Any) -> Any:
        return self._instead() if kind == BAD else self._sound.render(product, kind, *rest)


def nul() -> Rendered:
    return Text(text="nobody stores a \x00")


def defect() -> Rendered:
    raise ZeroDivisionError("a defect of ours")


def sabotage(rounds: Rounds, instead: Callable[[], Rendered]) -> Any:
    claimer: Any = rounds.worker._claimer
    sound, claimer._renderer = claimer._renderer, Sabotaged(claimer._renderer, instead)
    return sound


def settle(bench: Bench, rounds: Rounds, *deliveries: str) -> None:
    """Rounds, as its thread makes them, until none of these is queued or being sent."""
    deadline = time.monotonic() + 15
    while any(bench.row(each)[0] in ("queued", "sending") for each in deliveries):
        assert time.monotonic() < deadline, [bench.row(each) for each in deliveries]
        rounds.worker.round()
        time.sleep(0.005)


def error_of(bench: Bench, delivery: str) -> str:
    row = bench.owner.execute(
        "SELECT error FROM platform.delivery WHERE delivery_id = %s", [delivery]
    ).fetchone()
    assert row is not None
    return str(row[0])


def lifecycle(bench: Bench, kind: str = BAD, **columns: Any) -> str:
    """A prepared delivery of a kind that waits for nothing."""
    event = bench.event(kind.removeprefix("loans."), amount="1000.00", currency="EUR")
    bench.decide(event)
    return bench.delivery(event, kind=kind, **columns)


@pytest.mark.parametrize(
    ("instead", "told"),
    [
        (nul, "claiming it failed: UntranslatableCharacter: unsupported Unicode escape sequence"),
        (defect, "rendering it failed: ZeroDivisionError: a defect of ours"),
    ],
)
@pytest.mark.parametrize("channel", [Channel.WHATSAPP, Channel.INAPP])
def test_a_message_that_cannot_be_written_waits_for_a_person_and_the_rest_goes_out(
    bench: Bench, instead: Callable[[], Rendered], told: str, channel: Channel
) -> None:
    bench.person("a")
    bench.assign("a")
    bad = lifecycle(bench, channel=channel.value)
    good = [lifecycle(bench, "loans.sanctioned", user=user, channel=channel.value) for user in ("b", "c")]
    for user in ("b", "c"):
        bench.person(user)
    bench.owner.execute(
        "UPDATE platform.delivery SET role = 'user' WHERE tenant_id = %s AND user_id <> 'a'", [bench.tenant]
    )
    rounds = bench.worker(channel)
    sound = sabotage(rounds, instead)
    settle(bench, rounds, bad, *good)
    assert bench.row(bad) == ("held", "poison", 0)
    assert error_of(bench, bad).startswith(told)
    assert [bench.row(each) for each in good] == [("sent", None, 1)] * 2
    assert rounds.desks.busy == 0, "its seat is free"
    claimer: Any = rounds.worker._claimer
    claimer._renderer = sound
    assert operate.retry(bench.owner, [bad]) == 1
    settle(bench, rounds, bad)
    assert bench.row(bad) == ("sent", None, 1), "mended, it goes out"
    assert error_of(bench, bad) == "None"


def test_whoever_waited_behind_it_goes_on(bench: Bench) -> None:
    bench.person("a")
    bench.assign("a")
    bad, behind = lifecycle(bench), lifecycle(bench, "loans.sanctioned")
    rounds = bench.worker()
    sabotage(rounds, nul)
    settle(bench, rounds, bad, behind)
    assert [bench.row(bad)[0], bench.row(behind)[0]] == ["held", "sent"]


def job_of(rounds: Rounds, delivery: str) -> Job:
    found: list[Job] = [job for job in rounds.kept if job.message.delivery_id == delivery]
    return found[0]


def answer(rounds: Rounds, job: Job, given: Answer, *, took_s: float = 0.1) -> None:
    now = time.time()
    rounds.mailbox.answer(Answered(job, given, now - took_s, now))


def test_what_a_provider_says_of_itself_is_made_storable(bench: Bench) -> None:
    delivery = bench.ready()
    rounds = bench.worker(calls=False)
    rounds.once()
    said = Answer(Outcome.ACCEPTED, 200, "ref\x00" * 5_000, error="\ud800 no\x00thing " * 5_000)
    answer(rounds, job_of(rounds, delivery), said, took_s=-60.0)
    rounds.worker.round(claiming=False)
    assert bench.row(delivery) == ("sent", None, 1)
    row = bench.owner.execute(
        "SELECT provider_ref, error, latency_ms FROM platform.delivery_attempt WHERE delivery_id = %s",
        [delivery],
    ).fetchone()
    assert row is not None
    reference, error, latency = row
    assert reference.startswith("ref ref ")
    assert error.startswith("no thing no thing")
    assert max(len(reference), len(error)) <= 300
    assert latency == 0, "the machine's clock was set back meanwhile"


UNRECORDABLE = Answer(Outcome.ACCEPTED, 2**40, "wamid.x")
"""No status is so large; its column says so."""


def test_an_answer_that_cannot_be_recorded_leaves_its_delivery_on_hold_and_others_are_recorded(
    bench: Bench,
) -> None:
    bad = bench.ready()
    good = lifecycle(bench, "loans.sanctioned", user="b", role="user")
    bench.person("b")
    rounds = bench.worker(calls=False)
    rounds.once()
    answer(rounds, job_of(rounds, bad), UNRECORDABLE)
    answer(rounds, job_of(rounds, good), Answer(Outcome.ACCEPTED, 200, "wamid.good"))
    for _ in range(3):
        rounds.worker.round(claiming=False)
    assert bench.row(bad) == ("held", "poison", 1)
    assert error_of(bench, bad).startswith(
        "answered accepted, and recording it failed: NumericValueOutOfRange"
    )
    assert bench.row(good) == ("sent", None, 1)
    assert rounds.desks.busy == len(rounds.kept) - 2
    rounds.desks.undo()


def test_a_late_answer_that_cannot_be_recorded_changes_nothing(bench: Bench) -> None:
    delivery = bench.ready()
    late = bench.worker(calls=False)
    late.once()
    expire_lease(bench, delivery)
    bench.worker().through()
    assert bench.row(delivery) == ("sent", None, 2)
    answer(late, job_of(late, delivery), UNRECORDABLE)
    for _ in range(3):
        late.worker.round(claiming=False)
    assert bench.row(delivery) == ("sent", None, 2)
