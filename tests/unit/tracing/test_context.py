"""Where a trace comes from, what of it is kept, and that there is none where nobody asked for one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags

from connectors import tracing

TRACE = f"00-{'ab' * 16}-{'cd' * 8}-01"
SPAN_IDS = st.integers(min_value=1, max_value=2**64 - 1)
TRACE_IDS = st.integers(min_value=1, max_value=2**128 - 1)


@given(TRACE_IDS, SPAN_IDS, st.sampled_from([0, 1]))
def test_a_context_survives_the_outbox(trace_id: int, span_id: int, flags: int) -> None:
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    text = tracing.traceparent_of(NonRecordingSpan(context))
    assert trace.get_current_span(tracing.carried(text)).get_span_context() == context


@pytest.mark.parametrize("carried", [None, "", "garbage", f"00-{'0' * 32}-{'cd' * 8}-01", TRACE[:-3]])
def test_what_is_no_context_begins_a_trace_of_its_own(
    spans: InMemorySpanExporter, carried: str | None
) -> None:
    tracer = tracing.tracer()
    assert tracer is not None
    tracing.told(tracer, "decide", carried, SpanKind.CONSUMER, {}, 0.5)
    (span,) = spans.get_finished_spans()
    assert span.parent is None


def test_a_span_of_what_is_over_has_its_length_its_words_and_its_failure(spans: InMemorySpanExporter) -> None:
    tracer = tracing.tracer()
    assert tracer is not None
    said = {tracing.Attribute.TENANT: "acme", tracing.Attribute.REASON: None}
    tracing.told(tracer, "decide", TRACE, SpanKind.CONSUMER, said, 0.5, error="poison")
    (span,) = spans.get_finished_spans()
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == "ab" * 16
    assert span.attributes == {"tellonce.tenant": "acme"}
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 500_000_000
    assert (span.status.is_ok, span.status.description) == (False, "poison")


def test_outside_a_span_there_is_no_context() -> None:
    assert tracing.current_traceparent() is None
    assert tracing.tracer() is None


def test_an_application_s_own_sdk_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.sdk.trace import TracerProvider

    monkeypatch.setattr(trace, "get_tracer_provider", lambda: TracerProvider(shutdown_on_exit=False))
    assert tracing.tracer() is not None


@pytest.mark.parametrize(
    ("environment", "loads"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, True),
    ],
)
def test_only_an_endpoint_turns_it_on_and_loads_the_sdk(environment: dict[str, str], loads: bool) -> None:
    program = (
        "import sys\n"
        "from connectors import tracing\n"
        "with tracing.exporting('supersession.loans'):\n"
        "    print(tracing.tracer() is not None, 'opentelemetry.sdk' in sys.modules)\n"
        "assert tracing.tracer() is None\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    said = subprocess.run(
        [sys.executable, "-c", program], env=clean | environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [str(loads)] * 2
