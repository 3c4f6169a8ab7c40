"""librdkafka's configuration, in one place, each value with its reason.

There is no producer: everything that moves a fact forward is an outbox row, and only the connector writes to
topics.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from connectors.logging import get_logger
from connectors.settings import Latency, Settings

_log = get_logger(__name__)


class Action(StrEnum):
    """What is logged of librdkafka between calls."""

    AWAY = "kafka_away"
    """A broker does not answer; the client goes on by itself."""
    FAILED = "kafka_client_failed"
    """The client itself will not recover; whoever uses it gets the same as an exception."""


_librdkafka = logging.getLogger("librdkafka")

SYSLOG_CRITICAL: Final = 2

FETCH_WAIT_MS: Final[Mapping[Latency, int]] = MappingProxyType({"low": 100, "balanced": 250, "frugal": 1000})
"""How long an idle broker holds a fetch open. A record ends the wait at once, so this costs no latency where
records come; it is what a partition waits for that is assigned while a fetch is open, and the idle price."""

COMMON: Final[Mapping[str, Any]] = MappingProxyType(
    {
        # A typing error must not make a topic, whatever the broker allows.
        "allow.auto.create.topics": False,
        # A broker that comes back is found within two seconds rather than ten.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 2_000,
        # A peer that vanished without a word is noticed by the operating system too.
        "socket.keepalive.enable": True,
        # Requests are small and each is waited for: never hold one back to fill a packet.
        "socket.nagle.disable": True,
    }
)

CONSUMER: Final[Mapping[str, Any]] = MappingProxyType(
    {
        # The database holds the position; what Kafka is told is advice, given after the commit.
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # A position that is no longer there is noticed and told, never skipped over.
        "auto.offset.reset": "error",
        # A member that comes or goes stops only the partitions that move.
        "partition.assignment.strategy": "cooperative-sticky",
        # A killed process is replaced after this. The broker's least is 6 s; a pause of the machine of a few
        # seconds should not move partitions.
        "session.timeout.ms": 10_000,
        # A heartbeat's answer is how a member learns that partitions move; those that do stand still meanwhile.
        # With three seconds, a second process that joined cost a third of the leads up to three seconds.
        "heartbeat.interval.ms": 500,
        # A loop waits 30 s for its database and then ends; one that has not polled for two minutes is stuck.
        "max.poll.interval.ms": 120_000,
        # Answer with the first record there is; a batch fills itself from what arrives meanwhile.
        "fetch.min.bytes": 1,
        # Ten batches of 2,000 wait in memory, 16 MB at most; librdkafka's own 64 MB, times several
        # consumers, would fill a small container.
        "queued.min.messages": 20_000,
        "queued.max.messages.kbytes": 16 * 1024,
        # An answer holds thousands of records and is no burst; more than the 1 MB of a record batch.
        "fetch.max.bytes": 4 * 1024 * 1024,
        "max.partition.fetch.bytes": 1024 * 1024,
        # After a full queue, fetch as soon as there is room; the default of a second starves the loop.
        "fetch.queue.backoff.ms": 10,
        # A broker that restarts answers fetches with errors for a moment.
        "fetch.error.backoff.ms": 100,
        # Bodies are decided on: a bit that flipped on the way must not pass. Costs a few ns per record.
        "check.crcs": True,
        # A topic created after its group started is found within this; default five minutes.
        "topic.metadata.refresh.interval.ms": 30_000,
        "enable.partition.eof": False,
    }
)


def consumer_config(settings: Settings, group: str, *, client_id: str | None = None) -> dict[str, Any]:
    """Configuration for `confluent_kafka.Consumer` of a consumer group; a new dict each time.

    Offsets come from the database on assignment. While the broker is away, `poll` returns nothing and the
    client reconnects by itself; `error_cb` logs it once per change. `settings.kafka_options` win over
    everything here: they say how to reach the broker (SASL, TLS), and may tune what they must.
    """
    return {
        **COMMON,
        **CONSUMER,
        "bootstrap.servers": settings.kafka_bootstrap,
        "group.id": group,
        "client.id": client_id or f"tellonce-{group}",
        "fetch.wait.max.ms": FETCH_WAIT_MS[settings.latency],
        "error_cb": log_error,
        "logger": _librdkafka,
        **settings.kafka_options,
    }


def admin_config(settings: Settings, *, client_id: str = "tellonce-admin") -> dict[str, Any]:
    """Configuration for `AdminClient`. Its calls answer with what went wrong, so it logs nothing itself."""
    return {
        **COMMON,
        "bootstrap.servers": settings.kafka_bootstrap,
        "client.id": client_id,
        "log_level": SYSLOG_CRITICAL,
        "error_cb": _ignore,
        **settings.kafka_options,
    }


def admin_client(settings: Settings, *, client_id: str = "tellonce-admin") -> AdminClient:
    """An admin client; it connects when first asked something, and again whenever it has to."""
    return AdminClient(admin_config(settings, client_id=client_id))


def log_error(error: KafkaError) -> None:
    """librdkafka's own voice between calls: brokers that come and go. It goes on by itself, unless fatal."""
    if error.fatal():
        _log.error(Action.FAILED, code=error.name(), detail=error.str())
    else:
        _log.warning(Action.AWAY, code=error.name(), detail=error.str())


def _ignore(_error: KafkaError) -> None:
    """Without a callback librdkafka prints to stderr."""
