"""Kafka Connect: one distributed worker with the Debezium PostgreSQL connector."""

from __future__ import annotations

from pathlib import Path

import httpx

from deploy.local import jvm
from deploy.local.jars import Engines
from deploy.local.ports import LOOPBACK
from deploy.local.process import Launch

STOP_GRACE_S = 15.0
"""A worker stops its tasks and flushes their offsets; a killed one only repeats records."""

CONFIGURATION = """\
# Written at every start by deploy/local/connect.py
bootstrap.servers={bootstrap}
group.id=tellonce-connect
listeners=http://{host}:{port}
rest.advertised.host.name={host}
rest.advertised.port={port}

key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
config.storage.topic=tellonce-connect-configs
config.storage.replication.factor=1
offset.storage.topic=tellonce-connect-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic=tellonce-connect-status
status.storage.replication.factor=1
status.storage.partitions=1

# The age of what a killed worker repeats, and of the slot's confirmed position.
offset.flush.interval.ms=1000
# The connector sets its producer's linger and compression itself.
connector.client.config.override.policy=All
plugin.path=plugins
plugin.discovery=service_load
# A single worker that comes back takes its tasks at once, instead of being waited for five minutes.
scheduled.rebalance.max.delay.ms=0
session.timeout.ms=6000
heartbeat.interval.ms=2000
"""


def prepare(folder: Path, engines: Engines, bootstrap: str, port: int, out: Path) -> Launch:
    """Write the configuration and say how to start."""
    text = CONFIGURATION.format(host=LOOPBACK, bootstrap=bootstrap, port=port)
    jvm.lay_out(folder, engines, text)
    return jvm.launch(folder, "org.apache.kafka.connect.cli.ConnectDistributed", engines, out, STOP_GRACE_S)


def answers(url: str) -> bool:
    """Whether the worker has joined its group and takes connectors."""
    try:
        return httpx.get(f"{url}/connectors", timeout=2.0).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
