"""Two consumers, a stale one and the clock on the real database, against serial execution of the pure model.

The machine publishes events (late, twice, of several leads), lets either consumer commit any batch that is
there, wakes a stale one that read long ago, and lets the clock take nudges from scheduled to pending and tell
of it on the product's timers. At the end every event has been decided once, the database holds what serial
execution in partition order holds, and what was told is exactly what stood when its timer was decided.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from connectors.postgres import clock
from connectors.registry import load_catalogue
from consumers.preparation.model import Directory, Holder, Person
from consumers.runtime.batch import QUERIES, BatchTransaction
from consumers.runtime.fence import Fenced
from consumers.runtime.records import Read, Record
from consumers.supersession.consumer import Supersession
from consumers.supersession.decide import Known, decide
from deploy.local.passwords import DOMAIN
from deploy.local.stack import Stack
from producers import tenants
from schemas.envelope import Event
from schemas.platform_events import NUDGE_DUE, nudge_due, timers_topic
from schemas.states import NudgeState
from tests.integration.runtime.partition import SimulatedTopic

CATALOGUE = load_catalogue()
LOANS = CATALOGUE.product("loans").product
STEPS: dict[str, dict[str, object]] = {
    "loans.initiated": {},
    "loans.phone_verified": {},
    "loans.credit_check_done": {"credit_score": 700},
    "loans.savings_explored": {"savings_options": 2},
    "loans.offers_viewed": {"offers": 3},
    "loans.offer_submitted": {"offer_id": "o", "amount": 100},
    "loans.withdrawn": {},
    "loans.reapplied": {},
    "loans.sanctioned": {},
}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
STACK: list[Stack] = []
"""The run's stack, for the machine: Hypothesis makes machines without arguments."""


ANA = Person("ana", True, "en", "UTC", has_email=False, has_phone=True)


def assign_everybody(owner: psycopg.Connection[Any], tenant: str) -> None:
    """Each lead has the same applicant, so that there is always somebody to tell."""
    owner.execute(
        "INSERT INTO platform.contact (tenant_id, user_id, phone) VALUES (%s, 'ana', '+4930123456')",
        (tenant,),
    )
    owner.execute(
        "INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)"
        " SELECT %s, 'loans', subject, 'applicant', 'ana' FROM unnest('{L-0,L-1}'::text[]) AS subject",
        (tenant,),
    )


def everybody(tenant: str) -> Directory:
    """The same as the model has it."""
    return Directory({Holder(tenant, subject, "applicant"): ANA for subject in ("L-0", "L-1")})


class Consumer:
    """One process: its own connection, its own idea of where it stands."""

    def __init__(self, dsn: str, *topics: SimulatedTopic) -> None:
        self.conn = psycopg.connect(dsn, autocommit=True)
        self.places = {topic.place.topic: topic.place for topic in topics}
        self.positions = dict.fromkeys(self.places.values(), 0)
        self.transaction = BatchTransaction(Supersession(LOANS), CATALOGUE, timedelta(days=14))

    def commit(self, records: Sequence[Record]) -> bool:
        """Commit records as the loop would; False when the fence turned them away (and we realigned)."""
        if not records:
            return False
        places = [self.places[name] for name in {record.topic for record in records}]
        expected = {place: self.positions[place] for place in places}
        try:
            done = self.transaction.commit(self.conn, self.transaction.read(records), expected)
        except Fenced as fenced:
            self.positions |= {**fenced.moved.behind, **fenced.moved.ahead}
            return False
        self.positions |= done.positions
        return True

    def next_of(self, topic: SimulatedTopic, count: int | None = None) -> list[Record]:
        """What it would read next; all of it without a `count`."""
        position = self.positions[topic.place]
        return topic.records[position : None if count is None else position + count]


class Machine(RuleBasedStateMachine):
    """See the module. Subclasses take a safeguard away."""

    def __init__(self) -> None:
        super().__init__()
        stack = STACK[0]
        self.owner = psycopg.connect(stack.owner_dsn, autocommit=True)
        self.tenant = f"m-{uuid.uuid4().hex[:16]}"
        tenants.create(self.owner, self.tenant, roles=[DOMAIN])
        self.topic = SimulatedTopic("events.loans", uuid.uuid4().hex)
        self.timers = SimulatedTopic(timers_topic("loans"), uuid.uuid4().hex)
        self.consumers = [Consumer(stack.consumer_dsn, self.topic, self.timers) for _ in range(2)]
        assign_everybody(self.owner, self.tenant)
        self.held: list[Record] = []
        self.reached = 0
        self.owner.execute(
            QUERIES["claim_progress"],
            {
                "group": "supersession.loans",
                "now": clock.now(self.owner),
                "topic_ids": [topic.place.topic_id for topic in (self.topic, self.timers)],
                "partitions": [0, 0],
                "topics": [topic.place.topic for topic in (self.topic, self.timers)],
                "next_offsets": [0, 0],
            },
        )

    @initialize()
    def an_event_to_begin_with(self) -> None:
        self.publish("loans.initiated", "L-0", 0)

    @rule(
        name=st.sampled_from(sorted(STEPS)),
        subject=st.sampled_from(["L-0", "L-1"]),
        minute=st.integers(0, 30),
    )
    def publish(self, name: str, subject: str, minute: int) -> None:
        row = self.owner.execute(
            "SELECT platform.append(%s, 'loans', %s, %s, %s::jsonb, %s)::text",
            (
                self.tenant,
                subject,
                name,
                psycopg.types.json.Json({"applicant_id": "a", **STEPS[name]}),
                BEGIN + timedelta(minutes=minute),
            ),
        ).fetchone()
        assert row is not None
        self.topic.publish(self.owner, row[0], self.tenant)

    @rule(data=st.data())
    def capture_sends_again(self, data: st.DataObject) -> None:
        """Connect was killed: what it had sent since its last flush comes again, in the old order."""
        since = data.draw(st.integers(max(0, len(self.topic.records) - 4), len(self.topic.records) - 1))
        for record in self.topic.records[since:]:
            self.topic.write(record.key, record.value, record.headers)

    @rule(which=st.integers(0, 1), count=st.integers(1, 6))
    def consume(self, which: int, count: int) -> None:
        consumer = self.consumers[which]
        consumer.commit(consumer.next_of(self.topic, count))

    @rule(which=st.integers(0, 1), events=st.integers(0, 3), timers=st.integers(1, 3))
    def consume_timers(self, which: int, events: int, timers: int) -> None:
        """Of both topics, in one batch."""
        consumer = self.consumers[which]
        batch = [*consumer.next_of(self.topic, events), *consumer.next_of(self.timers, timers)]
        consumer.commit(batch)

    @rule(count=st.integers(1, 6))
    def stall(self, count: int) -> None:
        """The second consumer reads a batch and is stopped before it can commit."""
        self.held = self.consumers[1].next_of(self.topic, count)

    @rule()
    def wake_the_stale_one(self) -> None:
        """It wakes and commits what it read long ago, believing it stands where it stood."""
        if self.held:
            consumer = self.consumers[1]
            consumer.positions[self.topic.place] = self.held[0].offset
            consumer.commit(self.held)
            self.held = []

    @rule()
    def the_clock_fires(self) -> None:
        """What is scheduled becomes pending, and is told on the timers, in one transaction."""
        told = []
        with self.owner.transaction():
            due = self.owner.execute(
                "UPDATE platform.nudge SET state = 'pending', updated_at = %s"
                " WHERE tenant_id = %s AND state = 'scheduled' RETURNING nudge_id::text, event_id::text, subject_id",
                (clock.now(self.owner), self.tenant),
            ).fetchall()
            for nudge_id, event_id, subject in due:
                record = nudge_due(event_id, self.tenant, nudge_id)
                self.owner.execute(
                    "INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, key_id, topic,"
                    " event_type, payload, occurred_at) VALUES (%s, %s, 'loans', %s, %s, %s, %s, %s, now())",
                    (
                        record.event_id,
                        self.tenant,
                        subject,
                        subject,
                        self.timers.place.topic,
                        NUDGE_DUE,
                        record.payload,
                    ),
                )
                told.append(record.event_id)
        for each in told:
            self.timers.publish(self.owner, each, self.tenant)

    @invariant()
    def never_two_live_nudges(self) -> None:
        two = self.owner.execute(
            "SELECT subject_id FROM platform.nudge WHERE tenant_id = %s AND state IN ('scheduled', 'pending')"
            " GROUP BY subject_id HAVING count(*) > 1",
            (self.tenant,),
        ).fetchall()
        assert two == []

    @invariant()
    def the_position_never_goes_back(self) -> None:
        """What moves it back is a stale consumer; whoever takes over from there reads in a wrong order."""
        row = self.owner.execute(
            "SELECT next_offset FROM platform.consumer_progress WHERE topic_id = %s",
            (self.topic.place.topic_id,),
        ).fetchone()
        assert row is not None
        assert row[0] >= self.reached
        self.reached = row[0]

    def teardown(self) -> None:
        try:
            for _ in range(3):  # realigning takes a turn
                for topic in (self.topic, self.timers):
                    self.consumers[0].commit(self.consumers[0].next_of(topic))
            self.same_end_state()
            self.what_stood_was_told()
        finally:
            for consumer in self.consumers:
                consumer.conn.close()
            self.owner.close()

    def same_end_state(self) -> None:
        """What serial execution in partition order, each event once, comes to."""
        reader = self.consumers[0].transaction
        serial: dict[str, Event] = {}
        for item in reader.read(self.topic.records):
            assert isinstance(item, Read)
            serial.setdefault(item.event.event_id, item.event)
        model = decide(LOANS, {}, list(serial.values()), Known(directory=everybody(self.tenant)))
        decisions = self.owner.execute(
            "SELECT event_id::text, outcome::text, reason FROM platform.decision"
            " WHERE tenant_id = %s AND uuid_extract_version(event_id) = 7",
            (self.tenant,),
        ).fetchall()
        assert sorted(decisions) == sorted(
            (d.event.event_id, d.outcome.value, d.reason) for d in model.decisions
        )
        nudges = self.owner.execute(
            "SELECT nudge_id::text, step, state IN ('scheduled', 'pending'), reason, superseded_by::text"
            " FROM platform.nudge WHERE tenant_id = %s",
            (self.tenant,),
        ).fetchall()
        assert sorted(nudges, key=str) == sorted(
            (
                (n.nudge_id, n.step, n.state is not NudgeState.CANCELLED, n.reason, n.superseded_by)
                for n in model.armed.values()
            ),
            key=str,
        )
        journeys = self.owner.execute(
            "SELECT subject_id, reached, epoch_began_at, ended_at FROM platform.journey_progress"
            " WHERE tenant_id = %s",
            (self.tenant,),
        ).fetchall()
        assert {row[0]: row[1:] for row in journeys} == {
            key.subject_id: (list(lead.reached), lead.epoch_began_at, lead.ended_at)
            for key, lead in model.leads.items()
        }

    def what_stood_was_told(self) -> None:
        """Each timer once: told while its nudge stood, dropped when it no longer did; each immediate step once."""
        timers = self.owner.execute(
            "SELECT nudge_id::text, outcome::text, reason FROM platform.decision"
            " WHERE tenant_id = %s AND uuid_extract_version(event_id) = 8",
            (self.tenant,),
        ).fetchall()
        assert len(timers) == len(
            {record.key + (record.value or b"") for record in self.timers.records if record.key}
        )
        assert {row[1:] for row in timers} <= {("fired", None), ("dropped", "superseded")}
        deliveries = self.owner.execute(
            "SELECT nudge_id::text, event_id::text, subject_id, channel FROM platform.delivery WHERE tenant_id = %s",
            (self.tenant,),
        ).fetchall()
        assert len(deliveries) == len(set(deliveries))
        assert {row[0] for row in deliveries if row[0]} == {row[0] for row in timers if row[1] == "fired"}
        at_once = self.owner.execute(
            "SELECT event_id::text FROM platform.decision WHERE tenant_id = %s AND outcome = 'immediate'",
            (self.tenant,),
        ).fetchall()
        assert {row[1] for row in deliveries if not row[0]} == {row[0] for row in at_once}
        never_told = self.owner.execute(
            "SELECT nudge_id::text FROM platform.nudge WHERE tenant_id = %s AND state = 'pending'",
            (self.tenant,),
        ).fetchall()
        assert {row[0] for row in never_told} <= {row[0] for row in timers if row[1] == "fired"}
