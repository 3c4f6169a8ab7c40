"""Spans of a test, in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from connectors import tracing


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Recording is on; what has ended is here."""
    found = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    with tracing.recording(provider):
        yield found
    provider.shutdown()
