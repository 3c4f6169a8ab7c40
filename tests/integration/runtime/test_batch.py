"""The transaction of a batch on the real database: every misfortune has its defined outcome."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from connectors.postgres import clock
from consumers.runtime import dead_letters
from consumers.runtime.batch import QUERIES, BatchTransaction, Committed, NotVisible
from consumers.runtime.dead_letters import DeadLetterRefused
from consumers.runtime.errors import DecideError, Kind, classify
from consumers.runtime.fence import Fenced
from consumers.runtime.records import Record
from consumers.supersession.consumer import Decided, State, Supersession
from deploy.local.stack import Stack
from schemas.envelope import Event
from schemas.ids import uuid7_from
from schemas.products.catalogue import Catalogue
from tests.integration.runtime.partition import SimulatedTopic, with_header

GROUP = "supersession.loans"


@dataclass
class Bench:
    """One partition of loans, a consumer's connection, and where this process thinks it stands."""

    topic: SimulatedTopic
    conn: psycopg.Connection[Any]
    owner: psycopg.Connection[Any]
    transaction: BatchTransaction[Any, Any]
    tenant: str
    position: int = 0

    def append(self, name: str, subject: str = "L-1", **payload: object) -> str:
        """Commit an event; its id."""
        row = self.owner.execute(
            "SELECT platform.append(%s, 'loans', %s, %s, %s::jsonb)::text",
            (
                self.tenant,
                subject,
                f"loans.{name}",
                psycopg.types.json.Json({"applicant_id": "a", **payload}),
            ),
        ).fetchone()
        assert row is not None
        return str(row[0])

    def published(self, name: str, subject: str = "L-1", **payload: object) -> Record:
        """Commit an event and see its record arrive."""
        return self.topic.publish(self.owner, self.append(name, subject, **payload), self.tenant)

    def commit(self, *records: Record, singly: bool = False, give_up_absent: bool = False) -> Committed:
        """One batch, from where this process stands."""
        batch = self.transaction.read(records)
        done = self.transaction.commit(
            self.conn, batch, {self.topic.place: self.position}, singly=singly, give_up_absent=give_up_absent
        )
        self.position = done.positions[self.topic.place]
        return done

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What the owner sees of the tenant."""
        return self.owner.execute(statement.encode(), {"tenant": self.tenant}).fetchall()

    def decisions(self) -> list[tuple[str, str | None]]:
        """Outcome and reason of each of the tenant's events, in the order they were committed."""
        return self.rows(
            "SELECT d.outcome::text, d.reason FROM platform.outbox o JOIN platform.decision d"
            " USING (event_id, tenant_id) WHERE tenant_id = %(tenant)s ORDER BY o.position"
        )

    def dead(self) -> list[tuple[str, str]]:
        """Reason and state of each dead letter of the partition."""
        return self.owner.execute(
            "SELECT reason, state::text FROM platform.dead_letter WHERE topic_id = %s ORDER BY dead_letter_id",
            (self.topic.place.topic_id,),
        ).fetchall()


@pytest.fixture
def bench(
    pg_only: Stack, tenant: str, catalogue: Catalogue, owner: psycopg.Connection[Any]
) -> Iterator[Bench]:
    group = Supersession(catalogue.product("loans").product)
    topic = SimulatedTopic("events.loans", uuid.uuid4().hex)
    with psycopg.connect(pg_only.consumer_dsn, autocommit=True) as conn:
        conn.execute(
            QUERIES["claim_progress"],
            {
                "group": GROUP,
                "now": clock.now(conn),
                "topic_ids": [topic.place.topic_id],
                "partitions": [0],
                "topics": [topic.place.topic],
                "next_offsets": [0],
            },
        )
        transaction = BatchTransaction(group, catalogue, timedelta(days=14))
        yield Bench(topic, conn, owner, transaction, tenant)


def test_a_payload_is_oversized_by_the_installation_s_limit(bench: Bench, catalogue: Catalogue) -> None:
    group = Supersession(catalogue.product("loans").product)
    bench.transaction = BatchTransaction(group, catalogue, timedelta(days=14), payload_limit=10)
    bench.commit(bench.published("initiated"))
    assert bench.decisions() == [("dead_letter", "oversized")]


def test_a_batch_is_decided_written_and_advanced_at_once(bench: Bench) -> None:
    bench.commit(bench.published("initiated"), bench.published("credit_check_done", credit_score=1))
    assert bench.decisions() == [("scheduled", None), ("scheduled", None)]
    assert bench.rows(
        "SELECT step, state::text, reason FROM platform.nudge WHERE tenant_id = %(tenant)s ORDER BY nudge_id"
    ) == [
        ("loans.initiated", "cancelled", "superseded"),
        ("loans.credit_check_done", "scheduled", None),
    ]
    assert bench.position == 2


def test_a_record_that_arrives_again_changes_nothing(bench: Bench) -> None:
    first = bench.published("initiated")
    bench.commit(first)
    again = bench.topic.write(first.key, first.value, first.headers)
    done = bench.commit(again, bench.topic.write(first.key, first.value, first.headers))
    assert (done.skipped, done.decisions) == (2, [])
    assert bench.decisions() == [("scheduled", None)]


def test_ahead_of_us_is_another_owner(bench: Bench) -> None:
    record = bench.published("initiated")
    bench.commit(record)
    bench.position = 0
    with pytest.raises(Fenced) as fenced:
        bench.commit(record)
    assert fenced.value.moved.ahead == {bench.topic.place: 1}
    assert not fenced.value.moved.behind


def test_behind_us_is_a_database_restored_to_an_older_state(bench: Bench) -> None:
    record = bench.published("initiated")
    bench.position = 5
    with pytest.raises(Fenced) as fenced:
        bench.commit(record)
    assert fenced.value.moved.behind == {bench.topic.place: 0}
    assert bench.decisions() == []


def test_a_record_shown_before_its_commit_waits(bench: Bench) -> None:
    record = bench.published("initiated")
    early = with_header(record, "ce_id", uuid7_from(1_790_000_000_000, b"uncommitted").encode())
    with pytest.raises(NotVisible):
        bench.commit(early)
    assert bench.position == 0


def test_a_record_whose_row_never_committed_is_a_dead_letter_without_a_decision(bench: Bench) -> None:
    record = bench.published("initiated")
    never = with_header(record, "ce_id", uuid7_from(1_790_000_000_000, b"never").encode())
    bench.commit(record, never._replace(offset=1), give_up_absent=True)
    assert bench.dead() == [("not_committed", "open")]
    assert bench.decisions() == [("scheduled", None)]
    (letter,) = dead_letters.listed(bench.owner, reason="not_committed", tenant=bench.tenant)
    with pytest.raises(DeadLetterRefused, match="no row in the outbox"):
        dead_letters.retry(bench.owner, [letter.dead_letter_id], by="test")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ce_type": b"loans.nonsense"}, "unknown_type"),
        ({"ce_source": b"fraud"}, "wrong_product"),
        ({"ce_subject": b"L-2"}, "wrong_subject"),
        ({"ce_time": b"yesterday"}, "malformed_header"),
        ({"recorded_at": None}, "missing_header"),
    ],
)
def test_a_record_against_its_contract_is_a_dead_letter_with_a_decision(
    bench: Bench, change: Mapping[str, bytes | None], reason: str
) -> None:
    record = bench.published("initiated")
    for name, value in change.items():
        record = with_header(record, name, value)
    bench.commit(record)
    assert bench.dead() == [(reason, "open")]
    assert bench.decisions() == [("dead_letter", reason)]
    assert bench.position == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "undecodable"),
        (b'{"applicant_id": 7}', "schema_mismatch"),
        (b"\xc3\x01" + bytes(8), "unknown_schema"),
        (b"", "empty"),
        (b'{"applicant_id": "' + b"x" * 262_144 + b'"}', "oversized"),
        (b"hello", "undecodable"),
    ],
)
def test_a_body_against_its_schema_is_a_dead_letter_with_its_bytes(
    bench: Bench, body: bytes, reason: str
) -> None:
    bench.commit(bench.published("initiated")._replace(value=body))
    assert bench.dead() == [(reason, "open")]
    assert bench.decisions() == [("dead_letter", reason)]
    (letter,) = dead_letters.listed(bench.owner, tenant=bench.tenant)
    assert letter.body == body
    assert letter.error


def test_a_foreign_tenants_record_under_our_key_is_refused(bench: Bench) -> None:
    record = with_header(bench.published("initiated"), "ce_tenant", b"somebody-else")
    bench.commit(record, give_up_absent=True)
    assert [reason for reason, _ in bench.dead()] == ["not_committed"]
    assert bench.decisions() == []


def test_bytes_that_say_nothing_are_kept_with_their_place(bench: Bench) -> None:
    bench.commit(bench.topic.write(b"\x00\xff", b"\x00\x01", [("x", b"\x00\xfe")]))
    assert bench.dead() == [("missing_header", "open")]
    assert bench.position == 1


def test_a_record_past_the_horizon_is_dropped_as_too_old(bench: Bench) -> None:
    record = with_header(bench.published("initiated"), "recorded_at", b"2020-01-01T00:00:00+00:00")
    bench.commit(record)
    assert bench.decisions() == [("dropped", "too_old")]


def test_a_record_past_the_horizon_whose_day_is_retired_is_forgotten(bench: Bench) -> None:
    record = with_header(bench.published("initiated"), "recorded_at", b"2020-01-01T00:00:00+00:00")
    gone = with_header(record, "ce_id", uuid7_from(1_577_836_800_000, b"retired").encode())
    assert bench.commit(gone).forgotten == 1
    assert bench.dead() == []


class Stumbling(Supersession):
    """Cannot decide one subject."""

    def decide(self, state: State, events: Sequence[Event]) -> Decided:
        if any(event.subject_id == "L-poison" for event in events):
            raise ValueError("this one cannot be decided")
        return super().decide(state, events)


def test_poison_fails_alone_and_the_rest_goes_through(bench: Bench, catalogue: Catalogue) -> None:
    group = Stumbling(catalogue.product("loans").product)
    bench.transaction = BatchTransaction(group, catalogue, timedelta(days=14))
    records = [bench.published("initiated", subject) for subject in ("L-1", "L-poison", "L-2")]
    with pytest.raises(DecideError) as whole:
        bench.commit(*records)
    assert classify(whole.value) is Kind.POISON
    assert bench.decisions() == []
    bench.commit(*records, singly=True)
    assert bench.decisions() == [("scheduled", None), ("dead_letter", "poison"), ("scheduled", None)]
    assert bench.dead() == [("poison", "open")]
    assert bench.position == 3


def test_a_lead_on_a_step_that_left_the_list_is_an_unknown_step(bench: Bench) -> None:
    bench.commit(bench.published("initiated"))
    bench.owner.execute(
        "UPDATE platform.journey_progress SET reached = '{loans.vanished}' WHERE tenant_id = %s",
        (bench.tenant,),
    )
    record = bench.published("offers_viewed", offers=1)
    with pytest.raises(DecideError):
        bench.commit(record)
    bench.commit(record, singly=True)
    assert bench.dead() == [("unknown_step", "open")]


def test_a_dead_letter_retried_is_decided_as_if_it_came_late(bench: Bench) -> None:
    dead = bench.published("initiated")
    bench.commit(
        with_header(dead, "ce_type", b"loans.not_yet"), bench.published("advisor_assigned", advisor_id="x")
    )
    (letter,) = dead_letters.listed(bench.owner, tenant=bench.tenant)
    assert dead_letters.retry(bench.owner, [letter.dead_letter_id], by="operator") == 1
    assert bench.dead() == [("unknown_type", "retried")]
    assert letter.event_id is not None
    bench.commit(bench.topic.publish(bench.owner, letter.event_id, bench.tenant))
    assert sorted(bench.decisions()) == [("lifecycle", None), ("scheduled", None)]
    with pytest.raises(DeadLetterRefused, match="retried already"):
        dead_letters.retry(bench.owner, [letter.dead_letter_id], by="operator")


def test_a_dead_letter_discarded_keeps_its_decision(bench: Bench) -> None:
    bench.commit(bench.published("initiated")._replace(value=b"hello"))
    (letter,) = dead_letters.listed(bench.owner, tenant=bench.tenant)
    assert dead_letters.discard(bench.owner, [letter.dead_letter_id], by="operator", note="a test") == 1
    shown = dead_letters.shown(bench.owner, letter.dead_letter_id)
    assert (shown.state, shown.closed_by, shown.note) == ("discarded", "operator", "a test")
    assert bench.decisions() == [("dead_letter", "undecodable")]
    with pytest.raises(DeadLetterRefused, match="there is no dead letter"):
        dead_letters.shown(bench.owner, 9_000_000_000)
