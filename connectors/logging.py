"""Structured logs: one JSON object (or one coloured line) per entry, to stderr.

Every entry has `timestamp` (real time, UTC), `level`, `logger` and `action`; what concerns one event has
`tenant`, `event_id` and `trace_id` as well, so that a log search and `tellonce why` speak of the same
thing. Actions are closed, commented lists, one per package; text for people goes into `detail`. Bodies and
secrets are never logged.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import structlog
from structlog.typing import FilteringBoundLogger, Processor

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
)


def configure(log_format: LogFormat = "json", level: LogLevel = "info") -> None:
    """Make structlog and the standard library's root logger write the same entries; call it first thing.

    Libraries that log through `logging` (confluent-kafka, psycopg) come out in the same form. Calling again
    replaces the set-up rather than adding to it.
    """
    last: Processor
    if log_format == "json":
        tail: list[Processor] = [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("action"),
        ]
        last = structlog.processors.JSONRenderer(sort_keys=False)
    else:
        tail = []
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=list(_SHARED),
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *tail, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line at `info` for every request
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger by its module's name; it follows `configure` even when taken before it."""
    logger: FilteringBoundLogger = structlog.get_logger(name)
    return logger


def trace_id(traceparent: str | None) -> str | None:
    """The trace id of a W3C `traceparent` (version-traceid-parentid-flags), or None when there is none."""
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 else None


@contextmanager
def about(
    *, tenant: str | None = None, event_id: str | None = None, traceparent: str | None = None
) -> Iterator[None]:
    """What is logged inside says which tenant, event and trace it concerns; what is not given is left out."""
    known = {"tenant": tenant, "event_id": event_id, "trace_id": trace_id(traceparent)}
    with structlog.contextvars.bound_contextvars(**{key: value for key, value in known.items() if value}):
        yield
