"""One small HTTP server per process: `/health` for whoever restarts it, `/metrics` for Prometheus.

A registry is passed in, never the library's global one: a process shows what it registered and nothing
else, and two of them live in one test. The server answers from its own thread; a scrape never runs in the
process's loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from connectors import failpoints

REQUEST_TIMEOUT_S = 5.0
"""A scraper that sends nothing must not keep a thread."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the process does its work, and what it says about that. `ok` false answers 503."""

    ok: bool
    detail: Mapping[str, object] = field(default_factory=dict)


class TelemetryServer:
    """The running server. `close` ends its thread and frees the port; closing twice is harmless."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.05,), name="telemetry", daemon=True
        )
        self._thread.start()
        self._open = True

    @property
    def host(self) -> str:
        return str(self._server.server_address[0])

    @property
    def port(self) -> int:
        """The port taken, also when 0 was asked for."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        if self._open:
            self._open = False
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def serve(host: str, port: int, registry: CollectorRegistry, health: Callable[[], Health]) -> TelemetryServer:
    """Answer `/health` and `/metrics` on `host:port` (0: a free one) until closed.

    `health` is called per request in the server's thread: it must not block and must only read. Raises
    OSError when the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(HTTPStatus.OK, content_type, encode(registry))
            elif path == "/health":
                state = health()
                armed = {} if failpoints.armed() is None else {"failpoints": failpoints.armed()}
                body = orjson.dumps({"ok": state.ok, **state.detail, **armed}, default=str)
                status = HTTPStatus.OK if state.ok else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, "application/json", body)
            else:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"/health or /metrics\n")

        def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
            """Scrapes are not worth a line each."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    return TelemetryServer(server)
