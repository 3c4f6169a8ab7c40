"""What lies outside of the platform: providers on this machine, and the outage of one of them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.local.errors import StackError
from deploy.providers.running import HOST, LocalProviders, run

READY_WITHIN_S: Final = 30.0
AFTER: Final = 10
"""The outage begins once so many messages have arrived: in the middle of things."""
FELT_WITHIN_S: Final = 20.0
"""Until the first call fails; a busy machine may need a while."""
LASTS_S: Final = 3.5
"""From then on: shorter than a breaker's first pause and the first retry's, so that both find the provider well."""
ANSWERS_LOST: Final = 3
"""Messages that the dying provider still takes without saying so; fewer than open a breaker."""


@dataclass(frozen=True, slots=True)
class Outage:
    """What the outage came to, as the provider saw it."""

    seconds: float
    failed: int
    """Calls that went wrong; of `ANSWERS_LOST` of them the message had been taken."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The providers, as anybody sees them over HTTP."""

    accounts: Path
    """The file for `TELLONCE_ACCOUNTS`."""
    port: int

    def arrivals(self) -> Sequence[Mapping[str, Any]]:
        """Every message that arrived, in order."""
        found: Sequence[Mapping[str, Any]] = self._ask("GET", "/messages.json?limit=200000")
        return found

    def counts(self) -> Mapping[str, Any]:
        """How much was taken, repeated, refused."""
        found: Mapping[str, Any] = self._ask("GET", "/counts.json")
        return found

    def fail(self) -> None:
        """WhatsApp's endpoint dies: the answers to the last messages it takes are lost, then it takes no more."""
        lost = {"kind": "cut", "channel": "whatsapp", "accepted": True, "times": ANSWERS_LOST}
        away = {"kind": "status", "channel": "whatsapp", "status": 503}
        self._ask("POST", "/control", {"faults": [lost, away]})

    def mend(self) -> None:
        """It is well again."""
        self._ask("POST", "/control", {"clear": True})

    def outage(self, over: threading.Event) -> Outage:
        """Let it happen: begins once messages flow or when `over` is set, and ends some time after its first victim."""
        while self.counts()["accepted"] < AFTER and not over.wait(0.05):
            pass
        began = time.monotonic()
        self.fail()
        try:
            while not self.counts()["faults_taken"] and time.monotonic() < began + FELT_WITHIN_S:
                time.sleep(0.05)
            time.sleep(LASTS_S)  # not a wait for anything: so long is the provider away
        finally:
            self.mend()
        return Outage(time.monotonic() - began, self.counts()["faults_taken"])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        line = http.client.HTTPConnection(HOST, self.port, timeout=READY_WITHIN_S)
        try:
            line.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = line.getresponse()
            said = answer.read()
        finally:
            line.close()
        if answer.status != http.HTTPStatus.OK:
            raise StackError(f"the local providers answered {answer.status} to {method} {path}: {said!r}")
        return json.loads(said)


@contextmanager
def outside(folder: Path) -> Iterator[Outside]:
    """Local providers while the `with` lasts, in a thread of this process; their accounts file lies in `folder`."""
    accounts = folder / "accounts.toml"
    stop, ready = threading.Event(), threading.Event()
    ports: list[int] = []
    failures: list[BaseException] = []

    def tell(providers: LocalProviders) -> None:
        ports.append(providers.http_port)
        ready.set()

    def work() -> None:
        try:
            run(stop, accounts=accounts, ready=tell)
        except BaseException as error:  # noqa: BLE001 raised again where they were asked for
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="providers", daemon=True)
    thread.start()
    try:
        if not ready.wait(READY_WITHIN_S):
            raise TimeoutError(f"the local providers did not start within {READY_WITHIN_S:.0f} s")
        if failures:
            raise failures[0]
        yield Outside(accounts, ports[0])
    finally:
        stop.set()
        thread.join(READY_WITHIN_S)
