"""The loop: one batch after the other, while not stopping.

Single-threaded on purpose. Rebalances happen inside `poll`, when nothing is in hand, so nothing is in flight when a
partition goes; a stop is a flag that a signal sets. Everything that can go wrong ends in one of the verdicts
of `errors`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from connectors import failpoints, tracing
from connectors.failpoints import Failpoint
from connectors.kafka.topics import TopicSpec
from connectors.logging import about, get_logger
from consumers.runtime import assignment, spans
from consumers.runtime.assignment import Positions
from consumers.runtime.batch import BatchTransaction, Committed, NotVisible
from consumers.runtime.database import Database, Weather
from consumers.runtime.errors import Kind, classify
from consumers.runtime.fence import Fenced, Moved, Partition
from consumers.runtime.group import DecisionsT, StateT
from consumers.runtime.in_hand import InHand
from consumers.runtime.metrics import RuntimeMetrics
from consumers.runtime.records import Dead, Read, Record
from consumers.runtime.trials import FAILURES, Trials

BATCH_LIMIT = 2_000
"""Per-batch costs are spread thin by then; more only lengthens locks and the work lost to a conflict."""
POLL_LIMIT = 3 * BATCH_LIMIT
"""How much is taken at once when there is a backlog: all but the first batch is decoded while Postgres works."""
POLL_S = 0.2
"""How soon a stop is noticed by an idle process."""
ABSENT_AFTER_S = 5.0
"""A commit becomes visible within milliseconds of its WAL; a row that is not there by now never committed."""
VISIBLE_PAUSE_S = 0.003
TELL_KAFKA_EVERY_S = 1.0
"""Offsets in Kafka are read by dashboards alone; each telling is a write to a log of the broker's own."""

_log = get_logger(__name__)


class Loop(Generic[StateT, DecisionsT]):
    """Runs one group in this process until `stopping` says so. Not thread-safe."""

    def __init__(
        self,
        consumer: Consumer,
        admin: AdminClient,
        specs: Sequence[TopicSpec],
        group: str,
        transaction: BatchTransaction[StateT, DecisionsT],
        database: Database,
        metrics: RuntimeMetrics,
        stopping: Callable[[], bool],
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._specs = specs
        self._group = group
        self._transaction = transaction
        self._database = database
        self._metrics = metrics
        self._stopping = stopping
        self._positions = Positions()
        self._untold: dict[Partition, int] = {}
        self._tell_after = time.monotonic()
        self._topics = assignment.described(admin, specs)
        self._broker = Weather("the broker", stopping)
        self._in_hand: InHand[Message] = InHand(self._read, [], BATCH_LIMIT)
        self.last_progress = time.monotonic()

    @property
    def assigned(self) -> int:
        """How many partitions this process reads."""
        return len(self._positions)

    def run(self) -> None:
        """Until told to stop. Raises `StopRunning` when the process must end for another reason."""
        self._consumer.subscribe(
            [spec.name for spec in self._specs],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )
        while not self._stopping():
            self.run_once(POLL_S)

    def run_once(self, timeout_s: float) -> int:
        """What there is, or nothing after `timeout_s`; returns how many records it committed."""
        messages = self._poll(timeout_s)
        arrived = time.time()
        self._in_hand = InHand(self._read, messages, BATCH_LIMIT)
        count = 0
        while batch := self._in_hand.take():
            failpoints.reach(Failpoint.LOOP_POLLED)
            self.last_progress = time.monotonic()
            count += self._commit(batch, arrived)
            if self._stopping():
                break  # what is still in hand is read again by whoever comes next
        self.last_progress = time.monotonic()
        if self._untold and self.last_progress >= self._tell_after:
            self._tell_kafka()
        return count

    # -- Kafka ---------------------------------------------------------------------------------------

    def _poll(self, timeout_s: float) -> list[Message]:
        """The first record there is and what is already here behind it."""
        try:
            first = self._consumer.poll(timeout_s)
            if first is None:
                return []
            messages = [first, *self._consumer.consume(POLL_LIMIT - 1, timeout=0)]
        except KafkaException as error:
            if classify(error) is Kind.FATAL:
                raise
            self._broker.wait(error)
            return []
        return self._sound(messages)

    def _sound(self, messages: Sequence[Message]) -> list[Message]:
        """What is a record. Those before an error that set their partition's position elsewhere do not follow on
        it any more: what counts of them is read again.
        """
        sound: list[Message] = []
        for message in messages:
            error = message.error()
            if error is None:
                sound.append(message)
            elif self._on_error(message, error):
                place = message.topic(), message.partition()
                sound = [before for before in sound if (before.topic(), before.partition()) != place]
        return sound

    def _read(self, messages: Sequence[Message]) -> list[Read | Dead]:
        """Decode the records of partitions that are ours, and of those what continues our position."""
        return self._transaction.read(
            [record for record in map(Record.of, messages) if self._is_next(record)]
        )

    def _is_next(self, record: Record) -> bool:
        """Whether it is of a partition that is ours, at its position or beyond."""
        held = self._positions.get(record.topic, record.partition)
        return held is not None and record.offset >= held[1]

    def _on_error(self, message: Message, error: KafkaError) -> bool:
        """Whether the partition's position was set elsewhere because of it."""
        topic, partition = message.topic(), message.partition()
        if error.fatal():
            raise KafkaException(error)
        if topic is None or partition is None:
            _log.warning("kafka_error", detail=error.str())
            return False
        if error.code() in (
            KafkaError._AUTO_OFFSET_RESET,
            KafkaError.OFFSET_OUT_OF_RANGE,
            KafkaError.UNKNOWN_TOPIC_ID,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_PARTITION,
        ):
            self._find_again(topic, partition)
            return True
        _log.warning("kafka_error", detail=f"{topic}[{partition}]: {error.str()}")
        return False

    def _find_again(self, topic: str, partition: int) -> None:
        """The position is not in the log. Either the topic was made anew, and its new id has a beginning of
        its own; or retention passed the position, and the anti-join makes going back safe.
        """
        held = self._positions.get(topic, partition)
        if held is None:
            return
        self._topics = assignment.described(self._admin, self._specs)
        if self._topics[topic].topic_id != held[0].topic_id:
            cause = "topic_recreated"
            _log.error("topic_recreated", detail=f"{topic}[{partition}]: reading it from its beginning")
            found = self._database.patiently(
                lambda conn: assignment.claim(
                    conn, self._admin, self._group, self._topics, [(topic, partition)]
                )
            )
        else:
            cause = "out_of_range"
            found = self._database.patiently(
                lambda conn: assignment.rewind(conn, self._admin, self._group, held[0])
            )
        self._metrics.rewound(cause)
        self._positions.hold(found)
        self._go_to(assignment.as_offsets(found))

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Hand Kafka the database's positions; seeking or pausing here is not possible."""
        self._topics = assignment.described(self._admin, self._specs)
        wanted = [(place.topic, place.partition) for place in partitions]
        found = self._database.patiently(
            lambda conn: assignment.claim(conn, self._admin, self._group, self._topics, wanted)
        )
        self._positions.hold(found)
        consumer.incremental_assign(assignment.as_offsets(found))
        self._metrics.assigned(len(self._positions))
        _log.info("assigned", group=self._group, partitions=len(found))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Nothing is in hand during a poll, so there is nothing to drain. Closing the consumer comes here too."""
        self._tell_kafka()
        self._positions.release([(place.topic, place.partition) for place in partitions])
        consumer.incremental_unassign(partitions)
        self._metrics.assigned(len(self._positions))
        _log.info("revoked", group=self._group, partitions=len(partitions))

    def _go_to(self, offsets: list[TopicPartition]) -> None:
        """Read on from other offsets. Assigned anew rather than sought: a partition whose fetching ended with
        an offset error refuses a seek.
        """
        try:
            self._consumer.incremental_unassign(offsets)
            self._consumer.incremental_assign(offsets)
        except KafkaException as error:  # revoked meanwhile: its next owner reads the database
            _log.warning("partition_lost", detail=str(error))

    # -- Postgres ------------------------------------------------------------------------------------

    def _commit(self, batch: Sequence[Read | Dead], arrived: float) -> int:
        """Commit these records, whatever it takes short of skipping one. Returns how many counted."""
        for item in batch:
            if isinstance(item, Read):
                self._metrics.captured(arrived - item.event.recorded_at.timestamp())
                break  # the first of a batch has waited longest; one is enough for a distribution
        trials = Trials(self._database, self._metrics.retried)
        give_up_at = time.monotonic() + ABSENT_AFTER_S
        while batch:
            expected = self._positions.of({(item.record.topic, item.record.partition) for item in batch})
            began = time.monotonic()
            try:
                committed = self._transaction.commit(
                    self._database.connection(),
                    batch,
                    expected,
                    singly=trials.singly,
                    give_up_absent=began > give_up_at,
                    meanwhile=self._in_hand.read_ahead,
                )
            except Fenced as fenced:
                self._metrics.retried("fenced")
                batch = self._realign(fenced.moved, batch)
            except NotVisible as absent:
                self._metrics.retried("not_visible")
                _log.debug("not_visible", detail=str(absent))
                time.sleep(VISIBLE_PAUSE_S)
            except FAILURES as error:
                trials.failed(error)
            else:
                trials.succeeded()
                self._broker.over()
                self._committed(committed, len(batch), time.monotonic() - began)
                return len(batch)
        return 0

    def _realign(self, moved: Moved, batch: Sequence[Read | Dead]) -> list[Read | Dead]:
        """Behind: the database was restored, read again from where it stands. Ahead: somebody else decided
        these records; drop what that covers and go on with the rest.
        """
        _log.warning("fenced", detail=str(moved))
        self._positions.hold({**moved.behind, **moved.ahead})
        if moved.behind:
            # A restored database has lost rows of its own; what is missing is claimed again at its beginning.
            behind = self._database.patiently(
                lambda conn: assignment.claim(
                    conn,
                    self._admin,
                    self._group,
                    self._topics,
                    [(place.topic, place.partition) for place in moved.behind],
                )
            )
            self._positions.hold(behind)
            self._metrics.rewound("database_behind")
            self._go_to(assignment.as_offsets(behind))
        gone = {(place.topic, place.partition) for place in moved.behind}

        def still_next(record: Record) -> bool:
            return (record.topic, record.partition) not in gone and self._is_next(record)

        self._in_hand.keep(still_next)
        return [item for item in batch if still_next(item.record)]

    def _committed(self, committed: Committed, records: int, seconds: float) -> None:
        self._positions.hold(committed.positions)
        outcomes = Counter((decision.outcome.value, decision.reason) for decision in committed.decisions)
        for (outcome, reason), count in outcomes.items():
            self._metrics.decided(outcome, reason, count)
        self._metrics.committed(records, committed.skipped, committed.forgotten, seconds)
        if (tracer := tracing.tracer()) is not None:
            spans.decided(tracer, self._group, committed, seconds)
        for dead in committed.dead:
            self._metrics.dead(dead.reason.value)
            with about(
                tenant=dead.tenant_id, event_id=dead.event_id, traceparent=spans.carried_by(dead.record)
            ):
                _log.error(
                    "dead_letter",
                    group=self._group,
                    reason=dead.reason.value,
                    place=f"{dead.record.topic}[{dead.record.partition}]@{dead.record.offset}",
                    detail=dead.error,
                )
        self._untold.update(committed.positions)

    def _tell_kafka(self) -> None:
        """Where this process stands, for whoever looks there; nothing here depends on it."""
        untold, self._untold = self._untold, {}
        self._tell_after = time.monotonic() + TELL_KAFKA_EVERY_S
        if not untold:
            return
        try:
            self._consumer.commit(offsets=assignment.as_offsets(untold), asynchronous=True)
        except KafkaException as error:
            _log.debug("offset_commit_failed", detail=str(error))
        failpoints.reach(Failpoint.LOOP_OFFSETS)
