"""Kafka Connect's REST interface: what we use of it, typed, with errors that say what to do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Final, Self

import httpx

ANSWER_WITHIN_S: Final = 35.0
"""Creating a connector validates it against the database first; Connect itself gives up after 90 s."""
CONNECT_WITHIN_S: Final = 3.0
REBALANCED_WITHIN_S: Final = 30.0
"""While workers agree on who does what, changes are answered with 409; that takes a few seconds."""
RETRY_S: Final = 0.25


class State(StrEnum):
    """Of a connector or a task, as Connect names them.

    UNASSIGNED → RUNNING ⇄ PAUSED ⇄ STOPPED (no tasks)
                    ↓
                  FAILED → RESTARTING → RUNNING
    """

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    DESTROYED = "DESTROYED"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task; `trace` is the Java stack trace of a failed one."""

    number: int
    state: State
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """A connector and its tasks. One that is running may well have no task that is."""

    name: str
    state: State
    tasks: tuple[TaskStatus, ...] = ()
    trace: str = ""

    @property
    def failed_tasks(self) -> tuple[TaskStatus, ...]:
        return tuple(task for task in self.tasks if task.state is State.FAILED)

    @property
    def has_failed(self) -> bool:
        return self.state is State.FAILED or bool(self.failed_tasks)

    @property
    def is_streaming(self) -> bool:
        """Connector and all its tasks run, and it has at least one."""
        running = all(task.state is State.RUNNING for task in self.tasks)
        return self.state is State.RUNNING and bool(self.tasks) and running

    @property
    def why(self) -> str:
        """The innermost cause of the first failure in one line; empty when nothing failed."""
        traces = [self.trace, *(task.trace for task in self.tasks)]
        return next((root_cause(trace) for trace in traces if trace), "")


class ConnectError(Exception):
    """Kafka Connect did not do what was asked. The message names the address, what was asked, how to mend."""


class ConnectAway(ConnectError):  # noqa: N818 it is weather, not a defect
    """No answer: the worker is down, starting, or somewhere else. Trying again later is right."""


class ConnectBusy(ConnectError):  # noqa: N818 as above: it passes
    """The workers are rebalancing, longer than we wait for that. Trying again later is right."""


class ConnectRefused(ConnectError):  # noqa: N818 an answer to a request, not a defect
    """An answer, and it is no."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


class UnknownConnector(ConnectRefused):
    """Connect has no connector of this name."""


class ConnectClient:
    """Of one worker, any one: it passes requests on to the worker they concern. Close it, or use `with`.

    A user and password in the address are given to the worker (HTTP basic authentication) and shown to nobody.
    """

    def __init__(self, url: str) -> None:
        if not url:
            raise ConnectError("no address of Kafka Connect; set TELLONCE_CONNECT_URL=http://host:8083")
        try:
            address = httpx.URL(url.rstrip("/"))
        except httpx.InvalidURL:  # it quotes what it could not read, and that may hold a password
            raise ConnectError(
                "the address of Kafka Connect is no URL; set TELLONCE_CONNECT_URL=http://host:8083"
            ) from None
        self._url = str(address.copy_with(userinfo=b""))
        self._http = httpx.Client(
            base_url=address, timeout=httpx.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @property
    def url(self) -> str:
        """Where it is, for logs and messages: without the user and password that the address may carry."""
        return self._url

    def config(self, name: str) -> dict[str, str] | None:
        """The connector's configuration with every secret in it, or None when there is no such connector."""
        try:
            found: dict[str, str] = self._ask("GET", f"/connectors/{name}/config", f"read connector {name}")
        except UnknownConnector:
            return None
        return found

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or replace its configuration; Connect restarts its tasks either way."""
        self._ask("PUT", f"/connectors/{name}/config", f"configure connector {name}", dict(config))

    def status(self, name: str) -> ConnectorStatus:
        """Raises UnknownConnector, also for the instant between its creation and its first status."""
        return parse_status(self._ask("GET", f"/connectors/{name}/status", f"read connector {name}"))

    def pause(self, name: str) -> None:
        """Its task stays and holds the slot, and captures nothing. Asked for, not awaited."""
        self._ask("PUT", f"/connectors/{name}/pause", f"pause connector {name}")

    def resume(self, name: str) -> None:
        """End a pause or a stop. Asked for, not awaited."""
        self._ask("PUT", f"/connectors/{name}/resume", f"resume connector {name}")

    def stop(self, name: str) -> None:
        """Its task goes and lets go of the slot; the configuration stays. Asked for, not awaited."""
        self._ask("PUT", f"/connectors/{name}/stop", f"stop connector {name}")

    def restart(self, name: str, *, only_failed: bool = False) -> None:
        """The connector and its tasks, or those of them that failed. Asked for, not awaited."""
        path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed={str(only_failed).lower()}"
        self._ask("POST", path, f"restart connector {name}")

    def delete(self, name: str) -> None:
        """The connector goes, its stored offsets and its slot stay."""
        self._ask("DELETE", f"/connectors/{name}", f"delete connector {name}")

    def offsets(self, name: str) -> list[Mapping[str, object]]:
        """The positions in its source that the connector has stored; for Debezium one at most."""
        answer = self._ask("GET", f"/connectors/{name}/offsets", f"read the offsets of connector {name}")
        stored: list[Mapping[str, object]] = [each["offset"] for each in answer["offsets"]]
        return stored

    def forget_offsets(self, name: str) -> None:
        """Reset the stored positions; Connect refuses unless the connector is stopped, tasks and all."""
        self._ask("DELETE", f"/connectors/{name}/offsets", f"reset the offsets of connector {name}")

    def plugins(self) -> Sequence[str]:
        """Classes of the connectors that the worker has."""
        return [str(each["class"]) for each in self._ask("GET", "/connector-plugins", "list the plugins")]

    def _ask(self, method: str, path: str, what: str, body: object = None) -> Any:
        deadline = time.monotonic() + REBALANCED_WITHIN_S
        while True:
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                raise ConnectAway(
                    f"could not {what}: Kafka Connect at {self._url} does not answer"
                    f" ({error or type(error).__name__})."
                    " Is the worker running, and TELLONCE_CONNECT_URL right?"
                ) from error
            if answer.status_code != httpx.codes.CONFLICT:
                break
            if time.monotonic() > deadline:
                raise ConnectBusy(
                    f"could not {what}: the workers at {self._url} have been rebalancing for"
                    f" {REBALANCED_WITHIN_S:.0f} s ({_said(answer)})."
                    " Try again; if it stays, look at their logs."
                )
            time.sleep(RETRY_S)
        if answer.is_success:
            return answer.json() if answer.content else None
        message = (
            f"could not {what}: Kafka Connect at {self._url} answered {answer.status_code}: {_said(answer)}"
        )
        if answer.status_code == httpx.codes.NOT_FOUND and path.startswith("/connectors/"):
            raise UnknownConnector(f"{message}. `tellonce connector apply` creates it.", answer.status_code)
        raise ConnectRefused(message, answer.status_code)


def parse_status(answer: Mapping[str, Any]) -> ConnectorStatus:
    """Of the body that `GET /connectors/NAME/status` answers."""
    connector = answer["connector"]
    return ConnectorStatus(
        name=answer["name"],
        state=State(connector["state"]),
        trace=connector.get("trace", ""),
        tasks=tuple(
            TaskStatus(int(task["id"]), State(task["state"]), task.get("trace", ""))
            for task in answer["tasks"]
        ),
    )


def root_cause(trace: str) -> str:
    """The line of a Java stack trace that says what happened: its last cause, else its first line."""
    causes = [line for line in trace.splitlines() if line.startswith("Caused by: ")]
    first = trace.strip().splitlines()[0] if trace.strip() else ""
    return causes[-1].removeprefix("Caused by: ").strip() if causes else first


def _said(answer: httpx.Response) -> str:
    """Connect's own words; it repeats values that do not validate, but no passwords among them."""
    try:
        return str(answer.json()["message"]).strip()
    except (ValueError, KeyError, TypeError):
        return answer.text.strip()[:500] or answer.reason_phrase
