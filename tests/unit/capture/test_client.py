"""Connect's answers become types and errors that say what to do; a rebalance is waited for."""

from __future__ import annotations

import json
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from connectors.debezium.client import (
    ConnectAway,
    ConnectClient,
    ConnectError,
    ConnectRefused,
    State,
    UnknownConnector,
    parse_status,
    root_cause,
)


class Worker(ThreadingHTTPServer):
    """Answers each request with the next of `answers` and remembers what it was asked."""

    answers: list[tuple[int, object]]
    asked: list[str]
    credentials: list[str]


class Answer(BaseHTTPRequestHandler):
    server: Worker

    def _answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if given := self.headers.get("Authorization"):
            self.server.credentials.append(given.removeprefix("Basic "))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body = self.server.answers.pop(0)
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 the base class names them so

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent."""


@pytest.fixture
def worker() -> Iterator[Worker]:
    server = Worker(("127.0.0.1", 0), Answer)
    server.answers, server.asked, server.credentials = [], [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(worker: Worker) -> Iterator[ConnectClient]:
    with ConnectClient(f"http://127.0.0.1:{worker.server_port}/") as made:
        yield made


def test_a_status_is_parsed() -> None:
    status = parse_status(
        {
            "name": "tellonce",
            "connector": {"state": "RUNNING", "worker_id": "w:1"},
            "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": "a.B: c\n\tat d"}],
            "type": "source",
        }
    )
    assert status.state is State.RUNNING
    assert status.has_failed
    assert not status.is_streaming
    assert status.why == "a.B: c"


def test_a_connector_without_tasks_streams_nothing() -> None:
    assert not parse_status({"name": "n", "connector": {"state": "RUNNING"}, "tasks": []}).is_streaming


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        ("", ""),
        ("a.B: first\n\tat x", "a.B: first"),
        ("a.B: first\n\tat x\nCaused by: c.D: second\nCaused by: e.F: third\n\t... 3 more", "e.F: third"),
    ],
)
def test_the_root_cause_of_a_trace(trace: str, cause: str) -> None:
    assert root_cause(trace) == cause


def test_a_rebalance_is_waited_for(worker: Worker, client: ConnectClient) -> None:
    busy = (409, {"error_code": 409, "message": "rebalance in process"})
    worker.answers[:] = [busy, busy, (202, None)]
    client.pause("tellonce")
    assert worker.asked == ["PUT /connectors/tellonce/pause"] * 3


def test_a_refusal_says_who_refused_what_and_why(worker: Worker, client: ConnectClient) -> None:
    worker.answers[:] = [(400, {"error_code": 400, "message": "contains 1 error: slot.name is wrong"})]
    with pytest.raises(ConnectRefused) as raised:
        client.put_config("tellonce", {"slot.name": "!"})
    assert str(raised.value) == (
        f"could not configure connector tellonce: Kafka Connect at {client.url} answered 400:"
        " contains 1 error: slot.name is wrong"
    )
    assert raised.value.status == 400


def test_an_answer_that_is_no_json_is_quoted(worker: Worker, client: ConnectClient) -> None:
    worker.answers[:] = [(502, "Bad Gateway")]
    with pytest.raises(ConnectRefused, match=r"answered 502: .Bad Gateway"):
        client.plugins()


def test_an_unknown_connector_names_the_command_that_makes_it(worker: Worker, client: ConnectClient) -> None:
    worker.answers[:] = [(404, {"message": "No status found"}), (404, {"message": "not found"})]
    with pytest.raises(UnknownConnector, match="`tellonce connector apply` creates it"):
        client.status("tellonce")
    assert client.config("tellonce") is None


def test_no_answer_names_the_address_and_what_to_check() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with ConnectClient(url) as client, pytest.raises(ConnectAway) as raised:
        client.status("tellonce")
    assert f"Kafka Connect at {url} does not answer" in str(raised.value)
    assert "TELLONCE_CONNECT_URL" in str(raised.value)


def test_no_address_says_which_setting_is_missing() -> None:
    with pytest.raises(ConnectError, match="TELLONCE_CONNECT_URL"):
        ConnectClient("")


def test_who_we_are_in_the_address_goes_to_the_worker_and_nowhere_else(worker: Worker) -> None:
    address = f"127.0.0.1:{worker.server_port}"
    worker.answers[:] = [(401, {"message": "who?"})]
    with (
        ConnectClient(f"http://ops:s3cret@{address}") as client,
        pytest.raises(ConnectRefused, match=f"Kafka Connect at http://{address} answered 401: who") as raised,
    ):
        client.plugins()
    assert client.url == f"http://{address}"
    assert "s3cret" not in str(raised.value)
    assert worker.credentials == [b64encode(b"ops:s3cret").decode()]


def test_an_address_that_is_none_says_which_setting_to_mend() -> None:
    with pytest.raises(ConnectError, match=r"TELLONCE_CONNECT_URL=http://host:8083") as raised:
        ConnectClient("http://ops:s3cret@host:port")
    assert "s3cret" not in str(raised.value)


def test_only_failed_tasks_can_be_restarted(worker: Worker, client: ConnectClient) -> None:
    worker.answers[:] = [(202, {}), (204, None)]
    client.restart("tellonce", only_failed=True)
    client.restart("tellonce")
    assert worker.asked == [
        "POST /connectors/tellonce/restart?includeTasks=true&onlyFailed=true",
        "POST /connectors/tellonce/restart?includeTasks=true&onlyFailed=false",
    ]


def test_stored_offsets_are_unpacked(worker: Worker, client: ConnectClient) -> None:
    worker.answers[:] = [(200, {"offsets": [{"partition": {"server": "tellonce"}, "offset": {"lsn": 7}}]})]
    assert client.offsets("tellonce") == [{"lsn": 7}]
