"""The connector's configuration: typed here, rendered to the flat map of strings that Kafka Connect takes.

What is a field may differ between installations; what is a constant below must not, because consumers, the
reconciler and the supervisor rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from connectors.kafka.topics import RECORD_MAX_BYTES, TopicSpec
from connectors.postgres.pool import InvalidAddressError, parse
from connectors.settings import Latency, Settings

CLASS: Final = "io.debezium.connector.postgresql.PostgresConnector"
NAME: Final = "tellonce"
SLOT: Final = "tellonce"
PUBLICATION: Final = "tellonce_outbox"
TABLE: Final = "platform.outbox"

POLL_INTERVAL_MS: Final[Mapping[Latency, int]] = MappingProxyType({"low": 5, "balanced": 10, "frugal": 50})
"""How long the connector sleeps after finding nothing: what a record waits at most in a quiet stream, paid for in
idle CPU (a fifth of a core, an eighth, a thirtieth). In a busy one it does not sleep, and all are the same."""

HEARTBEAT_MS: Final = 500
HEARTBEAT_PREFIX: Final = "heartbeat"
"""Of the logical messages that the connector writes into the WAL itself: on an idle table they are what moves
the slot on, so that it neither holds WAL back nor looks stuck."""

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "event_id": "ce_id",
        "event_type": "ce_type",
        "product": "ce_source",
        "subject_id": "ce_subject",
        "occurred_at": "ce_time",
        "tenant_id": "ce_tenant",
        "content_type": "content-type",
        "traceparent": "traceparent",
        "recorded_at": "recorded_at",
    }
)
"""Columns of the outbox and the headers they become: CloudEvents' Kafka binding in binary mode, and ours."""

SECRET: Final = re.compile(r"(^|\.)(.*password|.*secret|.*jaas\.config)$")
"""Keys whose values are never shown; whatever a later field adds falls under it too."""
_REFERENCE: Final = re.compile(r"\$\{[a-z][a-z0-9_]*:[^}]+\}")
"""What the worker replaces by a secret of its own: `${file:/run/secrets/connect:password}`."""
HIDDEN: Final = "********"

CAPTURE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "connector.class": CLASS,
        # One slot is one stream is one order.
        "tasks.max": "1",
        "plugin.name": "pgoutput",
        # Migrations own the publication: inserts only, through the partitioned root, with generated columns.
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "table.include.list": re.escape(TABLE),
        # What the slot saw, nothing else: rows from before it are the reconciler's.
        "snapshot.mode": "no_data",
        # The slot is the memory of what is captured; it outlives the connector.
        "slot.drop.on.stop": "false",
        # A slot ahead of the stored position is another slot, and what lies between is lost: fail, for the
        # supervisor to mend and tell. The default streams on as if nothing had happened.
        "offset.mismatch.strategy": "trust_offset",
        # After a kill the old backend may hold the slot for a while: try again every second, for a minute.
        "slot.max.retries": "60",
        "slot.retry.delay.ms": "1000",
        # A database or broker that is away is weather: forever, and back a second after it is.
        "errors.max.retries": "-1",
        "retriable.restart.connector.wait.ms": "1000",
        # A value that cannot be converted stops the stream. The default publishes NULL in its place.
        "event.converting.failure.handling.mode": "fail",
        "event.processing.failure.handling.mode": "fail",
        "tombstones.on.delete": "false",
        "skipped.operations": "u,d,t",
        # A statement of the connector takes milliseconds.
        "database.query.timeout.ms": "30000",
        # A record is handed on at once. A larger batch is waited for: all of the poll interval, whatever has come, and
        # the last millisecond of it spinning. At 200 events/s that cost 5 ms and a third of the connector's CPU more;
        # a stream that is saturated pays for this with a quarter more (93 instead of 67 µs per row).
        "max.batch.size": "1",
        "max.queue.size": "8192",
        # 8,192 rows of the largest allowed body would not fit the heap.
        "max.queue.size.in.bytes": str(64 * 1024 * 1024),
        # Quantiles that nobody reads, computed per record.
        "statistics.metrics.enabled": "false",
        "extended.headers.enabled": "false",
    }
)

HEARTBEAT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "heartbeat.interval.ms": str(HEARTBEAT_MS),
        "heartbeat.action.query": f"SELECT pg_logical_emit_message(false, '{HEARTBEAT_PREFIX}', '')",
        # It moves the slot by being read; nobody needs it in a topic.
        "message.prefix.exclude.list": HEARTBEAT_PREFIX,
    }
)

ROUTER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.predicate": "is_outbox",
        "predicates": "is_outbox",
        "predicates.is_outbox.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "transforms.outbox.table.field.event.id": "event_id",
        "transforms.outbox.table.field.event.key": "message_key",
        "transforms.outbox.table.field.event.payload": "payload",
        "transforms.outbox.route.by.field": "topic",
        "transforms.outbox.route.topic.replacement": "${routedByValue}",
        "transforms.outbox.table.fields.additional.placement": ",".join(
            f"{column}:header:{header}" for column, header in HEADERS.items()
        ),
        "transforms.outbox.table.op.invalid.behavior": "error",
    }
)

WIRE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "header.converter": "org.apache.kafka.connect.storage.StringConverter",
        # Bytes pass as they are; heartbeats are structs, and those become JSON.
        "value.converter": "io.debezium.converters.BinaryDataConverter",
        "value.converter.delegate.converter.type": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.delegate.converter.type.schemas.enable": "false",
        # A record leaves at once; under load batches form by themselves behind the one in flight.
        "producer.override.linger.ms": "0",
        "producer.override.compression.type": "lz4",
        "producer.override.max.request.size": str(RECORD_MAX_BYTES),
    }
)


class Database(BaseModel):
    """Where the connector finds the database, seen from the Connect worker."""

    model_config = ConfigDict(frozen=True)

    host: str = Field(min_length=1)
    port: int = Field(default=5432, gt=0, lt=65536)
    user: str = Field(min_length=1)
    password: SecretStr
    """Or a reference that the worker resolves itself, such as `${file:/run/secrets/connect:password}`; then
    the password is neither in Connect's topics nor in what its REST interface answers."""
    name: str = Field(min_length=1)
    sslmode: str = "prefer"
    sslrootcert: str | None = None

    @classmethod
    def from_dsn(cls, dsn: str) -> Database:
        """Of a libpq address or connection string. Raises ValueError (never showing the password)."""
        try:
            given = {key: str(value) for key, value in parse(dsn).items() if value is not None}
        except InvalidAddressError as error:
            raise ValueError(f"TELLONCE_CONNECT_DATABASE_URL is no database address: {error}") from None
        missing = [key for key in ("host", "user", "password", "dbname") if not given.get(key)]
        if missing:
            raise ValueError(
                f"the connector's database address lacks {', '.join(missing)};"
                " set TELLONCE_CONNECT_DATABASE_URL=postgresql://user:password@host:port/dbname"
            )
        port = given.get("port", "5432")
        if not port.isdecimal():
            raise ValueError(
                f"the connector's database address has port {port!r}; the connector reads one host"
            )
        return cls(
            host=given["host"],
            port=int(port),
            user=given["user"],
            password=SecretStr(given["password"]),
            name=given["dbname"],
            sslmode=given.get("sslmode", "prefer"),
            sslrootcert=given.get("sslrootcert"),
        )

    def render(self) -> dict[str, str]:
        """With the password: for Connect alone."""
        rendered = {
            "database.hostname": self.host,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password.get_secret_value(),
            "database.dbname": self.name,
            "database.sslmode": self.sslmode,
        }
        if self.sslrootcert:
            rendered["database.sslrootcert"] = self.sslrootcert
        return rendered


class ConnectorConfig(BaseModel):
    """The connector as it should be. Equal configurations render equally."""

    model_config = ConfigDict(frozen=True)

    database: Database
    name: str = Field(default=NAME, pattern=r"^[a-z][a-z0-9_-]*$")
    """Of the connector, and the prefix of what it calls its source; of one cell among many."""
    slot: str = Field(default=SLOT, pattern=r"^[a-z0-9_]{1,63}$")
    latency: Latency = "balanced"
    failover_slot: bool = False
    """Let standbys keep the slot (PostgreSQL 17+, `sync_replication_slots`); only at the slot's creation."""

    @classmethod
    def from_settings(cls, settings: Settings) -> ConnectorConfig:
        """Raises ValueError when the settings lack the connector's database address."""
        return cls(
            database=Database.from_dsn(settings.connect_database_url.get_secret_value()),
            latency=settings.latency,
        )

    def render(self) -> dict[str, str]:
        """What Connect is given. Holds the password: show `visible(…)` of it instead."""
        return {
            "name": self.name,
            "topic.prefix": self.name,
            "slot.name": self.slot,
            "slot.failover": str(self.failover_slot).lower(),
            "poll.interval.ms": str(POLL_INTERVAL_MS[self.latency]),
            "predicates.is_outbox.pattern": rf"{re.escape(self.name)}\.{re.escape(TABLE)}",
            **self.database.render(),
            **CAPTURE,
            **HEARTBEAT,
            **ROUTER,
            **WIRE,
        }

    @property
    def own_topics(self) -> tuple[TopicSpec, ...]:
        """Topics that the connector itself writes to; nobody reads them."""
        return (TopicSpec(f"__debezium-heartbeat.{self.name}", partitions=1, retention=timedelta(days=1)),)


def visible(config: Mapping[str, str]) -> dict[str, str]:
    """A rendered configuration that may be shown: secrets are masked; a reference to one is not secret."""
    return {
        key: HIDDEN if SECRET.search(key) and not _REFERENCE.fullmatch(value) else value
        for key, value in config.items()
    }
