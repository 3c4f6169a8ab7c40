"""One trace from a domain's commit to its provider's call, at a collector that speaks OTLP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from producers import outbox
from tests.acceptance.house import APPLICANT, DECIDING, House, Lead
from tests.acceptance.waiting import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@dataclass
class Collector:
    """An OTLP/HTTP endpoint; spans as (trace id, span id, parent id, name)."""

    url: str
    spans: list[tuple[str, str, str, str]] = field(default_factory=list)

    def of_trace(self) -> dict[str, str]:
        """Name by span id, of the test's trace."""
        return {span: name for trace, span, _, name in self.spans if trace == TRACE}


@pytest.fixture
def collector() -> Iterator[Collector]:
    found: Collector

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            request = ExportTraceServiceRequest.FromString(
                self.rfile.read(int(self.headers["content-length"]))
            )
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found.spans += [
                        (each.trace_id.hex(), each.span_id.hex(), each.parent_span_id.hex(), each.name)
                        for each in scope.spans
                    ]
            body = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_commit_and_its_provider_call_are_one_trace(house: House, lead: Lead, collector: Collector) -> None:
    traced = replace(
        house,
        environment={
            **house.environment,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        },
    )
    lead.service.start_application("L-1", applicant_id="ada", contact=APPLICANT)
    with traced.running(*DECIDING, "delivery.whatsapp"):
        conn = lead.service._conn
        with conn.transaction():
            outbox.append(
                conn,
                tenant_id=lead.tenant,
                product="loans",
                subject_id="L-1",
                event_type="loans.offer_submitted",
                payload={"applicant_id": "ada", "offer_id": "o-1", "amount": 1},
                traceparent=f"00-{TRACE}-{PARENT}-01",
            )
        until(lambda: lead.told("offer_received") == [("whatsapp", "+4915112345678")], "she is told")
    names = set(collector.of_trace().values())
    for stage in ("decide supersession.loans", "claim whatsapp", "send whatsapp", "record whatsapp"):
        assert stage in names
    arrival = next(each for each in lead.arrivals() if each.traceparent and TRACE in each.traceparent)
    assert arrival.traceparent is not None
    _, trace, span, _ = arrival.traceparent.split("-")
    assert trace == TRACE
    assert collector.of_trace()[span] == "send whatsapp", "the request's parent is the span of its call"
    parents = {
        parent for trace, _, parent, name in collector.spans if trace == TRACE and name.startswith("decide")
    }
    assert parents == {PARENT}, "decisions hang on the domain's own span"
