"""Named places at which a process can be made to die, to stand still or to fail, so that what must hold there is shown.

Always compiled in, off unless `arm` was called: what is left then is one comparison per batch or call, none per event.
`tellonce run` arms what `TELLONCE_FAILPOINTS` says:

    delivery.claimed=kill@3               SIGKILL to this process, the third time that it gets there
    loop.committed=kill%0.01,seed=7       each time with this chance; the same seed strikes at the same times
    delivery.called=stop@1;clock.fired=raise

Without `@` or `%` it strikes every time. `kill` is SIGKILL, `stop` is SIGSTOP (somebody else sends SIGCONT), `raise`
is a `FailpointStruck`. Each strike is a line in the file that `TELLONCE_FAILPOINTS_LOG` names, synced before it
strikes.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import orjson


class Failpoint(StrEnum):
    """Every place there is: the step that has been taken when it is reached, before the next one is."""

    LOOP_POLLED = "loop.polled"
    """The runtime has records in hand, and has done nothing with them."""
    LOOP_DECIDED = "loop.decided"
    """Everything of a batch has been written; its transaction is open."""
    LOOP_COMMITTED = "loop.committed"
    """Postgres has committed the batch; nobody in this process has been told."""
    LOOP_OFFSETS = "loop.offsets"
    """Positions are kept, and Kafka has been handed the offsets."""
    SUPERSESSION_WRITTEN = "supersession.written"
    """Journeys and nudges have been written, what they tell at once has not."""
    CLOCK_MARKED = "clock.marked"
    """Due nudges are pending and their timers in the outbox; the transaction is open."""
    CLOCK_FIRED = "clock.fired"
    """Postgres has committed them."""
    DELIVERY_LEASED = "delivery.leased"
    """Claims have been written: leases, frozen bodies, what ends or waits; the transaction is open."""
    DELIVERY_CLAIMED = "delivery.claimed"
    """Postgres has committed the claims; no call has begun."""
    DELIVERY_CALLED = "delivery.called"
    """The provider has answered one call; nobody has been told."""
    DELIVERY_NOTED = "delivery.noted"
    """Answers have been written; the transaction is open."""
    DELIVERY_RECORDED = "delivery.recorded"
    """Postgres has committed the answers; the calls' seats are not free yet."""


class Action(StrEnum):
    """What a strike does."""

    KILL = "kill"
    STOP = "stop"
    RAISE = "raise"


class InvalidFailpoints(ValueError):  # noqa: N818 it is an answer to a person
    """What was asked for is no such thing; the message says what is."""


class FailpointStruck(Exception):  # noqa: N818 it is asked for, nobody's error
    """Raised where `raise` strikes: a defect, as far as anybody around it can see."""


@dataclass(frozen=True, slots=True)
class Strike:
    """What happens at a failpoint, and when: `at` the n-th time, with `chance` each time, or every time."""

    action: Action
    at: int | None = None
    chance: float | None = None
    seed: int = 0


_STRIKE = re.compile(
    r"(?P<name>[a-z_.]+)=(?P<action>[a-z]+)(?:@(?P<at>[1-9][0-9]*)|%(?P<chance>[0-9.]+)(?:,seed=(?P<seed>[0-9]+))?)?"
)


def parse(text: str) -> dict[Failpoint, Strike]:
    """What `TELLONCE_FAILPOINTS` says; nothing when it is empty. Raises `InvalidFailpoints`."""
    return dict(_parse_one(part.strip()) for part in text.split(";") if part.strip())


def _parse_one(part: str) -> tuple[Failpoint, Strike]:
    match = _STRIKE.fullmatch(part)
    if match is None:
        raise InvalidFailpoints(
            f"{part!r} is not NAME=ACTION, NAME=ACTION@N or NAME=ACTION%CHANCE[,seed=N]; several are separated by ';'"
        )
    name, action, at, chance, seed = match.group("name", "action", "at", "chance", "seed")
    if name not in set(Failpoint):
        raise InvalidFailpoints(f"there is no failpoint {name!r}; there are {', '.join(Failpoint)}")
    if action not in set(Action):
        raise InvalidFailpoints(f"a failpoint does not {action!r}; it does {', '.join(Action)}")
    try:
        likely = None if chance is None else float(chance)
    except ValueError:
        likely = -1.0
    if likely is not None and not 0 <= likely <= 1:
        raise InvalidFailpoints(f"{part!r}: a chance is between 0 and 1")
    return Failpoint(name), Strike(
        Action(action), None if at is None else int(at), likely, 0 if seed is None else int(seed)
    )


@dataclass(slots=True)
class _Place:
    """A failpoint that is armed, and how often it has been reached."""

    strike: Strike
    chances: random.Random
    reached: int = 0

    def strikes(self) -> bool:
        """Whether it does this time."""
        self.reached += 1
        if self.strike.at is not None:
            return self.reached == self.strike.at
        return self.strike.chance is None or self.chances.random() < self.strike.chance


@dataclass(slots=True)
class _Armed:
    """What is armed in this process. Reached from several threads."""

    places: Mapping[Failpoint, _Place]
    log: Path | None
    said: str
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, point: Failpoint) -> None:
        place = self.places.get(point)
        if place is None:
            return
        with self.lock:
            if not place.strikes():
                return
            self._note(point, place)
        match place.strike.action:
            case Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Action.RAISE:
                raise FailpointStruck(f"{point}, reached for the {place.reached}. time")

    def _note(self, point: Failpoint, place: _Place) -> None:
        """On disk before it strikes, so that whoever counts misses none."""
        if self.log is None:
            return
        line = {
            "at": datetime.now(UTC),
            "pid": os.getpid(),
            "failpoint": point,
            "action": place.strike.action,
            "reached": place.reached,
        }
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, orjson.dumps(line) + b"\n")  # one write: several processes may share the file
            os.fsync(file)
        finally:
            os.close(file)


_armed: _Armed | None = None


def reach(point: Failpoint) -> None:
    """Say that this place has been reached. Nothing, unless it is armed."""
    if _armed is not None:
        _armed.reach(point)


def arm(text: str, log: Path | None = None) -> None:
    """From now on these strike, and no others; an empty text disarms. Raises `InvalidFailpoints`."""
    global _armed
    strikes = parse(text)
    places = {
        point: _Place(strike, random.Random(f"{point} {strike.seed}"))  # noqa: S311 to be repeatable
        for point, strike in strikes.items()
    }
    _armed = _Armed(places, log, text) if places else None


def armed() -> str | None:
    """What is armed in this process, as it was said; None when nothing is."""
    return None if _armed is None else _armed.said


@contextmanager
def armed_with(text: str, log: Path | None = None) -> Iterator[None]:
    """Armed inside, disarmed after it."""
    arm(text, log)
    try:
        yield
    finally:
        arm("")
