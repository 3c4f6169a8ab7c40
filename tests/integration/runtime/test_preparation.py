"""Preparation on the real database: what a group commits when an event is to be told.

Commits, timers and batches are this test's; everything behind them is real.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from connectors.postgres import clock
from connectors.registry import load_catalogue
from consumers.rules.consumer import Rules
from consumers.runtime.batch import QUERIES, BatchTransaction
from consumers.runtime.group import Group
from consumers.runtime.records import Read, Record
from consumers.supersession.consumer import Supersession
from deploy.local.stack import Stack
from schemas import avro
from schemas.codec import EventContract
from schemas.ids import derived_id
from schemas.platform_events import NUDGE_DUE, nudge_due, timers_topic
from schemas.products.catalogue import Catalogue, LoadedProduct
from schemas.products.model import Product
from tests.integration.runtime.partition import SimulatedTopic

CATALOGUE = load_catalogue()
LOANS = CATALOGUE.product("loans").product
TEN = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OFFER = {"applicant_id": "ana", "offer_id": "o-1", "amount": 100}


class House:
    """One tenant: its domain service, its two topics, and one process of a group at a time."""

    def __init__(self, stack: Stack, tenant: str, catalogue: Catalogue, product: str) -> None:
        self.tenant = tenant
        self.product = product
        self.catalogue = catalogue
        self.domain = psycopg.connect(stack.domain_dsn, autocommit=True)
        self.consumer = psycopg.connect(stack.consumer_dsn, autocommit=True)
        self.events = SimulatedTopic(f"events.{product}", uuid.uuid4().hex)
        self.timers = SimulatedTopic(timers_topic(product), uuid.uuid4().hex)

    def close(self) -> None:
        self.domain.close()
        self.consumer.close()

    def contact(self, user: str, **columns: object) -> None:
        row = {"email": f"{user}@example.org", "phone": "+4930123456", **columns}
        names = ", ".join(row)
        self.domain.execute(
            f"INSERT INTO platform.contact (tenant_id, user_id, {names})"
            f" VALUES (%s, %s, {', '.join(['%s'] * len(row))})".encode(),
            [self.tenant, user, *row.values()],
        )

    def assign(self, subject: str, role: str, user: str) -> None:
        self.domain.execute(
            "INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)"
            " VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (tenant_id, product, subject_id, role) DO UPDATE SET user_id = EXCLUDED.user_id",
            [self.tenant, self.product, subject, role, user],
        )

    def append(self, name: str, payload: dict[str, object], subject: str = "L-1") -> Record:
        row = self.domain.execute(
            "SELECT platform.append(%s, %s, %s, %s, %s, %s, traceparent => %s)::text",
            [self.tenant, self.product, subject, f"{self.product}.{name}", Jsonb(payload), TEN, TRACE],
        ).fetchone()
        assert row is not None
        return self.events.publish(self.consumer, row[0], self.tenant)

    def fire(self) -> list[Record]:
        """As the clock does: what is scheduled becomes pending, and is told on the product's timers."""
        records = []
        with self.consumer.transaction():
            nudges = self.consumer.execute(
                "UPDATE platform.nudge SET state = 'pending' WHERE tenant_id = %s AND state = 'scheduled'"
                " RETURNING nudge_id::text, event_id::text, subject_id, due_at",
                [self.tenant],
            ).fetchall()
            for nudge_id, event_id, subject, due_at in nudges:
                record = nudge_due(event_id, self.tenant, nudge_id)
                self.consumer.execute(
                    "INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, key_id, topic,"
                    " event_type, payload, occurred_at, traceparent)"
                    " VALUES (%(id)s, %(tenant)s, %(product)s, %(subject)s, %(subject)s, %(topic)s, %(type)s,"
                    " %(payload)s, %(due)s, %(trace)s)",
                    {
                        "id": record.event_id,
                        "tenant": self.tenant,
                        "product": self.product,
                        "subject": subject,
                        "topic": self.timers.place.topic,
                        "type": NUDGE_DUE,
                        "payload": record.payload,
                        "due": due_at,
                        "trace": TRACE,
                    },
                )
                records.append(record.event_id)
        return [self.timers.publish(self.consumer, each, self.tenant) for each in records]

    def decide(
        self, group: Group[Any, Any], records: list[Record], *, singly: bool = False
    ) -> list[tuple[str, str | None]]:
        """Commit these records of both topics in one batch; the outcomes, in their order."""
        topics = {record.topic: record for record in records}
        expected = {}
        for topic in (self.events, self.timers):
            if topic.place.topic in topics:
                first = min(r.offset for r in records if r.topic == topic.place.topic)
                expected[topic.place] = first
                self.consumer.execute(
                    QUERIES["claim_progress"],
                    {
                        "group": group.name,
                        "now": clock.now(self.consumer),
                        "topic_ids": [topic.place.topic_id],
                        "partitions": [0],
                        "topics": [topic.place.topic],
                        "next_offsets": [first],
                    },
                )
        transaction = BatchTransaction(group, self.catalogue, timedelta(days=14))
        read = transaction.read(records)
        done = transaction.commit(self.consumer, read, expected, singly=singly)
        assert not done.dead, done.dead
        outcomes = {d.event.event_id: (d.outcome.value, d.reason) for d in done.decisions}
        return [outcomes[item.event.event_id] for item in read if isinstance(item, Read)]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.consumer.execute(query.encode(), [self.tenant]).fetchall()

    def deliveries(self) -> list[tuple[Any, ...]]:
        return self.rows(
            "SELECT kind, user_id, role, channel, lane, state::text FROM platform.delivery"
            " WHERE tenant_id = %s ORDER BY seq"
        )


@pytest.fixture
def house(pg_only: Stack, tenant: str) -> Iterator[House]:
    house = House(pg_only, tenant, CATALOGUE, "loans")
    try:
        yield house
    finally:
        house.close()


@pytest.fixture
def peopled(house: House) -> House:
    """An applicant and an advisor on lead L-1."""
    house.contact("ana", locale="pt-BR", zone="America/Sao_Paulo")
    house.contact("ben", phone=None)
    house.assign("L-1", "applicant", "ana")
    house.assign("L-1", "advisor", "ben")
    return house


@pytest.mark.parametrize("singly", [False, True])
def test_an_immediate_step_is_told_in_the_transaction_that_decides_it(peopled: House, singly: bool) -> None:
    step = peopled.append("offer_submitted", OFFER)
    assert peopled.decide(Supersession(LOANS), [step], singly=singly) == [("immediate", None)]
    kind = "loans.offer_received"
    assert peopled.deliveries() == [
        (kind, "ana", "applicant", "whatsapp", "events.loans", "queued"),
        (kind, "ben", "advisor", "inapp", "events.loans", "queued"),
        (kind, "ben", "advisor", "email", "events.loans", "queued"),
    ]
    assert peopled.rows(
        "SELECT user_id, role, locale, zone, nudge_id FROM platform.notification WHERE tenant_id = %s ORDER BY user_id"
    ) == [
        ("ana", "applicant", "pt-BR", "America/Sao_Paulo", None),
        ("ben", "advisor", "en", "UTC", None),
    ]


def test_every_delivery_is_announced_on_its_channel_in_order(peopled: House) -> None:
    peopled.decide(Supersession(LOANS), [peopled.append("offer_submitted", OFFER)])
    announced = peopled.rows(
        "SELECT topic, message_key, event_type, subject_id, traceparent,"
        " convert_from(payload, 'UTF8')::json->>'delivery_id', event_id::text"
        " FROM platform.outbox WHERE tenant_id = %s AND topic LIKE 'deliveries.%%' ORDER BY position"
    )
    queued = peopled.rows("SELECT delivery_id::text FROM platform.delivery WHERE tenant_id = %s ORDER BY seq")
    tenant = peopled.tenant
    assert [row[:2] for row in announced] == [
        ("deliveries.whatsapp", f"{tenant}:L-1"),
        ("deliveries.inapp", f"{tenant}:ben"),
        ("deliveries.email", f"{tenant}:L-1"),
    ]
    assert {row[2:5] for row in announced} == {("tellonce.delivery_ready", "L-1", TRACE)}
    assert [(row[5],) for row in announced] == queued
    reader = BatchTransaction(Supersession(LOANS), CATALOGUE, timedelta(days=14))
    records = [
        SimulatedTopic(row[0], uuid.uuid4().hex).publish(peopled.consumer, row[6], tenant)
        for row in announced
    ]
    read = reader.read(records)
    assert all(isinstance(item, Read) for item in read), "what is announced decodes"


def test_a_due_nudge_is_told_to_applicant_and_advisor(peopled: House) -> None:
    group = Supersession(LOANS)
    peopled.decide(group, [peopled.append("initiated", {"applicant_id": "ana"})])
    assert peopled.deliveries() == []
    assert peopled.decide(group, peopled.fire()) == [("fired", None)]
    kind = "loans.finish_application"
    assert peopled.deliveries() == [
        (kind, "ana", "applicant", "whatsapp", "timers.loans", "queued"),
        (kind, "ben", "advisor", "inapp", "timers.loans", "queued"),
        (kind, "ben", "advisor", "email", "timers.loans", "queued"),
    ]
    nudges = peopled.rows("SELECT state::text, nudge_id, event_id FROM platform.nudge WHERE tenant_id = %s")
    assert [state for state, *_ in nudges] == ["pending"]
    told = peopled.rows("SELECT DISTINCT nudge_id, event_id FROM platform.delivery WHERE tenant_id = %s")
    assert told == [nudges[0][1:]]
    decided = peopled.rows(
        "SELECT nudge_id FROM platform.decision WHERE tenant_id = %s AND outcome = 'fired'"
    )
    assert decided == [(nudges[0][1],)]


def test_the_same_timer_again_tells_nothing_twice(peopled: House) -> None:
    group = Supersession(LOANS)
    peopled.decide(group, [peopled.append("initiated", {"applicant_id": "ana"})])
    (timer,) = peopled.fire()
    peopled.decide(group, [timer])
    before = peopled.deliveries()
    again = peopled.timers.write(timer.key, timer.value, timer.headers)
    transaction = BatchTransaction(group, CATALOGUE, timedelta(days=14))
    done = transaction.commit(
        peopled.consumer, transaction.read([again]), {peopled.timers.place: again.offset}
    )
    assert (done.skipped, peopled.deliveries()) == (1, before)


@pytest.mark.parametrize("together", [False, True])
def test_a_timer_whose_nudge_was_superseded_is_dropped(peopled: House, together: bool) -> None:
    group = Supersession(LOANS)
    peopled.decide(group, [peopled.append("initiated", {"applicant_id": "ana"})])
    (timer,) = peopled.fire()
    step = peopled.append("phone_verified", {"applicant_id": "ana"})
    if together:
        outcomes = peopled.decide(group, [step, timer])
    else:
        outcomes = [*peopled.decide(group, [step]), *peopled.decide(group, [timer])]
    assert outcomes == [("scheduled", None), ("dropped", "superseded")]
    assert peopled.deliveries() == []


def test_a_nudge_that_nobody_can_receive_ends(house: House) -> None:
    group = Supersession(LOANS)
    house.contact("ana", active=False)
    house.assign("L-1", "applicant", "ana")
    house.assign("L-1", "advisor", "somebody without a contact")
    house.decide(group, [house.append("initiated", {"applicant_id": "ana"})])
    (timer,) = house.fire()
    assert house.decide(group, [timer]) == [("cancelled", "nobody")]
    assert house.rows("SELECT state::text, reason FROM platform.nudge WHERE tenant_id = %s") == [
        ("cancelled", "nobody")
    ]
    assert house.deliveries() == []
    step = house.append("phone_verified", {"applicant_id": "ana"})
    assert house.decide(group, [step]) == [("scheduled", None)], "and the journey goes on"


def test_recipients_are_who_they_are_when_it_fires(peopled: House) -> None:
    group = Supersession(LOANS)
    peopled.decide(group, [peopled.append("initiated", {"applicant_id": "ana"})])
    peopled.contact("cleo")
    peopled.assign("L-1", "advisor", "cleo")
    peopled.decide(group, peopled.fire())
    assert {row[1:3] for row in peopled.deliveries()} == {("ana", "applicant"), ("cleo", "advisor")}


def test_a_lifecycle_event_is_told_beside_the_journey(peopled: House) -> None:
    records = [
        peopled.append("initiated", {"applicant_id": "ana"}),
        peopled.append("sanctioned", {"applicant_id": "ana"}),
    ]
    assert peopled.decide(Rules(LOANS), records) == [("ignored", None), ("fired", None)]
    assert peopled.decide(Supersession(LOANS), records) == [("scheduled", None), ("lifecycle", None)]
    assert [row[3] for row in peopled.deliveries()] == ["whatsapp", "email", "inapp"]
    assert peopled.rows("SELECT state::text FROM platform.nudge WHERE tenant_id = %s") == [("scheduled",)]


def test_leads_of_one_batch_are_told_apart_and_in_order(peopled: House) -> None:
    peopled.assign("L-2", "applicant", "ben")
    records = [peopled.append("offer_submitted", OFFER, subject) for subject in ("L-2", "L-1")]
    peopled.decide(Supersession(LOANS), records)
    assert [(row[1], row[3]) for row in peopled.deliveries()] == [
        ("ana", "whatsapp"),
        ("ben", "inapp"),
        ("ben", "email"),
    ], "ben has no phone"
    records = [peopled.append("sanctioned", {"applicant_id": "ana"}, subject) for subject in ("L-2", "L-1")]
    peopled.decide(Rules(LOANS), records)
    assert [(row[1], row[3]) for row in peopled.deliveries()[3:]] == [
        ("ben", "email"),
        ("ben", "inapp"),
        ("ana", "whatsapp"),
        ("ana", "email"),
        ("ana", "inapp"),
    ]


def test_a_due_nudge_for_whom_its_event_named(pg_only: Stack, tenant: str) -> None:
    """The payload of the cause is read again, and only for products whose nudges need it."""
    product = Product.model_validate(
        {
            "product": "loans",
            "subject": "lead",
            "journey": {"steps": [{"on": "loans.begun", "nudge": "loans.go_on", "after": "5m"}]},
            "kinds": {
                "loans.go_on": {
                    "expires_after": "1h",
                    "audiences": [{"who": "payload.owner_id", "channels": ["inapp"]}],
                }
            },
        }
    )
    schema = {"type": "record", "name": "begun", "fields": [{"name": "owner_id", "type": "string"}]}
    contract = EventContract("loans.begun", schema, avro.Writers(avro.parse(schema), {}))
    loaded = LoadedProduct(product, {"loans.begun": contract})
    house = House(pg_only, tenant, Catalogue([loaded]), "loans")
    try:
        house.contact("ana")
        group = Supersession(product, loaded.events)
        begun = [house.append("begun", {"owner_id": user}, f"L-{user}") for user in ("ana", "unknown")]
        house.decide(group, begun)
        timers = sorted(house.fire(), key=lambda record: record.key or b"")
        assert house.decide(group, timers) == [("fired", None), ("cancelled", "nobody")]
        assert house.rows(
            "SELECT user_id, role, expires_at - (SELECT due_at FROM platform.nudge n WHERE n.nudge_id = d.nudge_id)"
            " FROM platform.delivery d WHERE tenant_id = %s"
        ) == [("ana", "payload.owner_id", timedelta(hours=1))]
        (cause,) = house.rows("SELECT event_id::text FROM platform.delivery WHERE tenant_id = %s")[0]
        (intent,) = house.rows("SELECT intent_id::text FROM platform.notification WHERE tenant_id = %s")[0]
        assert intent == derived_id(cause, tenant, "intent", "loans.go_on")
    finally:
        house.close()
