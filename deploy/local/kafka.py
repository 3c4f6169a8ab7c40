"""Kafka: one node in KRaft mode, broker and controller in one process."""

from __future__ import annotations

import base64
import subprocess
import uuid
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local import jvm
from deploy.local.errors import StackError
from deploy.local.jars import Engines
from deploy.local.ports import LOOPBACK
from deploy.local.process import Launch

FORMAT_TIMEOUT_S = 60
STOP_GRACE_S = 15.0
"""A broker closes its logs; one that cannot is killed and recovers them at its next start."""

CONFIGURATION = """\
# Written at every start by deploy/local/kafka.py
process.roles=broker,controller
node.id=1
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller_port}
log.dirs=data

# Eight and three threads by default, for a machine of its own; here they only take turns on a few cores.
num.io.threads=2
num.network.threads=1

# Topics come from one place, with their partitions and retention; a typing error must not create one.
auto.create.topics.enable=false

# One node: nothing can be replicated.
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4

# Members join within milliseconds here: waiting for more of them only delays every test.
group.initial.rebalance.delay.ms=0
# Of its default of 128 MB, a few compacted internal topics need this much.
log.cleaner.dedupe.buffer.size=16777216
"""


def prepare(folder: Path, engines: Engines, port: int, controller_port: int, out: Path) -> Launch:
    """Write the configuration, format the storage if there is none, and say how to start."""
    text = CONFIGURATION.format(host=LOOPBACK, port=port, controller_port=controller_port)
    jvm.lay_out(folder, engines, text)
    if not (folder / "data" / "meta.properties").exists():
        _format(folder, engines)
    return jvm.launch(folder, "kafka.Kafka", engines, out, STOP_GRACE_S)


def answers(bootstrap: str) -> bool:
    """Whether a client sees the broker in its own metadata."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 2000})
    try:
        return bool(client.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


def _format(folder: Path, engines: Engines) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    arguments = ("format", "--standalone", "--cluster-id", cluster, "--config", "run.properties")
    run = subprocess.run(
        jvm.command(folder, "kafka.tools.StorageTool", *arguments, options=jvm.from_archive(folder, engines)),
        cwd=folder,
        env=jvm.environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=FORMAT_TIMEOUT_S,
        check=False,
    )
    if run.returncode != 0:
        raise StackError(f"Kafka's storage could not be formatted:\n{(run.stdout + run.stderr).strip()}")
