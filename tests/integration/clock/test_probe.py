"""Is the past complete? Nothing fires while an event of its subject lacks supersession's decision."""

from __future__ import annotations

from producers.clock.probe import Subject, incomplete
from tests.integration.clock.conftest import GROUP, TENANT, Database


def subject(name: str, *, tenant: str = TENANT, product: str = "loans") -> Subject:
    return Subject(tenant, product, name)


def test_many_subjects_are_judged_at_once(database: Database) -> None:
    decided, _, _ = database.happened("a", "a", "b")
    database.decided(decided)
    (done,) = database.happened("c")
    database.decided(done)
    conn = database.connect(database.consumer_dsn)
    asked = [subject(name) for name in ("c", "b", "nobody", "a")]
    assert incomplete(conn, asked) == {subject("a"), subject("b")}


def test_another_groups_decision_completes_nothing(database: Database) -> None:
    (event_id,) = database.happened("a")
    database.decided(event_id, group="rules.loans")
    conn = database.connect(database.consumer_dsn)
    assert incomplete(conn, [subject("a")]) == {subject("a")}
    database.decided(event_id, group=GROUP)
    assert incomplete(conn, [subject("a")]) == set()


def test_a_subject_of_the_same_name_elsewhere_is_another(database: Database) -> None:
    database.happened("a")
    conn = database.connect(database.consumer_dsn)
    assert incomplete(conn, [subject("a", tenant="other"), subject("a", product="shop")]) == set()


def test_no_subjects_need_no_statement(database: Database) -> None:
    conn = database.connect(database.consumer_dsn)
    conn.close()
    assert incomplete(conn, []) == set()


def test_a_resent_event_is_still_owed(database: Database) -> None:
    (event_id,) = database.happened("a")
    conn = database.connect(database.consumer_dsn)
    conn.execute("SELECT platform.resend(%s::uuid[], %s)", [[event_id], [TENANT]])
    assert incomplete(conn, [subject("a")]) == {subject("a")}


def test_each_subject_costs_an_index_probe(database: Database) -> None:
    database.run(
        "SELECT platform.append(%s, 'loans', 's' || n, 'loans.initiated', '{}') "
        "FROM generate_series(1, 500) n",
        TENANT,
    )
    database.run("ANALYZE platform.outbox")
    rows = database.run(
        "EXPLAIN SELECT place FROM unnest(ARRAY['s1', 's2']) WITH ORDINALITY AS s (subject_id, place) "
        "WHERE platform.undecided('supersession.loans', %s, 'loans', s.subject_id)",
        TENANT,
    )
    plan = "\n".join(row[0] for row in rows)
    assert "Function Scan" in plan or "Unnest" in plan
    assert plan.count("Seq Scan on outbox") == 0
