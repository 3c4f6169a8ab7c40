"""The states of a delivery and the directory of people, as the database keeps them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from itertools import product

import psycopg
import pytest
from psycopg import errors

from connectors.postgres.bootstrap import Group
from schemas.states import DeliveryState
from tests.deliveries import WAY_TO
from tests.integration.postgres.conftest import Conn, Party

ALLOWED: Mapping[str, set[str]] = {
    "queued": {"sending", "sent", "suppressed", "expired", "held"},
    "sending": {"queued", "sent", "failed", "suppressed", "expired", "held"},
    "held": {"queued", "sent", "suppressed"},
}


def prepare(conn: Conn, tenant: str, **columns: object) -> str:
    seed = uuid.uuid4().hex
    delivery_id = f"{seed[:8]}-{seed[8:12]}-8{seed[13:16]}-8{seed[17:20]}-{seed[20:]}"
    row = {"delivery_id": delivery_id, "tenant": tenant, "state": "queued", "reason": None, **columns}
    conn.execute(
        "INSERT INTO platform.delivery (delivery_id, tenant_id, notification_id, product, subject_id, kind,"
        " user_id, role, channel, account, lane, event_id, due_at, created_at, updated_at, state, reason)"
        " VALUES (%(delivery_id)s, %(tenant)s, %(delivery_id)s, 'loans', 'L-1', 'k', 'u', 'applicant',"
        " 'email', 'email', 'events.loans', uuidv7(), now(), now(), now(),"
        " %(state)s::platform.delivery_state, %(reason)s)",
        row,
    )
    return delivery_id


def move(conn: Conn, delivery: str, state: str) -> None:
    moved = conn.execute(
        "UPDATE platform.delivery SET state = %s::platform.delivery_state, reason = %s,"
        " lease_until = now(), attempt_token = uuidv7() WHERE delivery_id = %s",
        [state, "cancelled" if state in ("failed", "suppressed", "held") else None, delivery],
    )
    assert moved.rowcount == 1


@pytest.mark.parametrize(("before", "after"), list(product(DeliveryState, DeliveryState)))
def test_transitions(consumer: Conn, tenant: str, before: DeliveryState, after: DeliveryState) -> None:
    delivery = prepare(consumer, tenant)
    for state in WAY_TO[before]:
        move(consumer, delivery, state)
    if after == before or after in ALLOWED.get(before, set()):
        move(consumer, delivery, after)
    else:
        with pytest.raises(errors.CheckViolation, match=f"cannot go from {before} to {after}"):
            move(consumer, delivery, after)


def test_an_end_is_an_end(consumer: Conn, tenant: str) -> None:
    assert {state for state in DeliveryState if state.is_terminal} == set(DeliveryState) - set(ALLOWED)


@pytest.mark.parametrize("state", [state for state in DeliveryState if state != "queued"])
def test_a_delivery_begins_queued(consumer: Conn, tenant: str, state: str) -> None:
    with pytest.raises(errors.CheckViolation, match=f"cannot go from nothing to {state}"):
        prepare(consumer, tenant, state=state, reason="cancelled")


def test_what_is_being_sent_has_a_lease(consumer: Conn, tenant: str) -> None:
    delivery = prepare(consumer, tenant)
    with pytest.raises(errors.CheckViolation, match="delivery_lease_while_sending"):
        consumer.execute("UPDATE platform.delivery SET state = 'sending' WHERE delivery_id = %s", [delivery])


@pytest.mark.parametrize("state", ["failed", "suppressed", "held"])
def test_what_is_not_sent_says_why(consumer: Conn, tenant: str, state: str) -> None:
    delivery = prepare(consumer, tenant)
    move(consumer, delivery, "sending")
    with pytest.raises(errors.CheckViolation, match="delivery_reason_when_not_sent"):
        consumer.execute(
            "UPDATE platform.delivery SET state = %s::platform.delivery_state WHERE delivery_id = %s",
            [state, delivery],
        )


@pytest.mark.parametrize("column", ["tenant_id", "subject_id", "user_id", "channel", "lane", "event_id"])
def test_what_a_delivery_is_never_changes(consumer: Conn, tenant: str, column: str) -> None:
    prepare(consumer, tenant)
    with pytest.raises(errors.InsufficientPrivilege):
        consumer.execute(f"UPDATE platform.delivery SET {column} = {column}".encode())


@pytest.mark.parametrize("table", ["delivery_body", "delivery_attempt", "notification"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}"])
def test_history_is_only_added_to(consumer: Conn, table: str, verb: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        consumer.execute(verb.format(f"platform.{table}").encode())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("user_id", "a:b"),
        ("user_id", ""),
        ("first_name", ""),
        ("first_name", "Ana\nBcc: x"),
        ("locale", "English"),
        ("locale", "pt_BR"),
        ("zone", "Europe/Atlantis"),
        ("zone", "UTC+3"),
        ("zone", "'; x"),
        ("email", "nobody"),
        ("email", "a@b\nBcc: c@d"),
        ("email", "a@b, c@d"),
        ("phone", "0301234567"),
        ("phone", "+0301234567"),
    ],
)
def test_a_contact_that_nobody_could_use_is_refused(
    domain: Conn, tenant: str, column: str, value: str
) -> None:
    row = {"user_id": "u-1", column: value}
    names = ", ".join(row)
    with pytest.raises(errors.DataError if column == "zone" and "/" in value else errors.CheckViolation):
        domain.execute(
            f"INSERT INTO platform.contact (tenant_id, {names}) VALUES (%s, {', '.join(['%s'] * len(row))})".encode(),
            [tenant, *row.values()],
        )


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_a_contact_is_kept_and_erased_by_its_service(domain: Conn, tenant: str, zone: str) -> None:
    upsert = (
        b"INSERT INTO platform.contact (tenant_id, user_id, first_name, locale, zone, email, phone)"
        b" VALUES (%s, 'u-1', 'Ana', 'pt-BR', %s, %s, '+4930123456')"
        b" ON CONFLICT (tenant_id, user_id) DO UPDATE SET email = EXCLUDED.email"
    )
    domain.execute(upsert, [tenant, zone, "ana@example.org"])
    domain.execute(upsert, [tenant, zone, "ana@example.com"])
    found = domain.execute(
        "SELECT email, active, updated_at > now() - interval '1 minute' FROM platform.contact WHERE tenant_id = %s",
        [tenant],
    ).fetchall()
    assert found == [("ana@example.com", True, True)]
    assert domain.execute("DELETE FROM platform.contact WHERE tenant_id = %s", [tenant]).rowcount == 1


def test_an_assignment_changes_hands(domain: Conn, tenant: str) -> None:
    for user in ("u-1", "u-2"):
        domain.execute(
            "INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)"
            " VALUES (%s, 'loans', 'L-1', 'advisor', %s)"
            " ON CONFLICT (tenant_id, product, subject_id, role) DO UPDATE SET user_id = EXCLUDED.user_id",
            [tenant, user],
        )
    held = domain.execute("SELECT user_id FROM platform.assignment WHERE tenant_id = %s", [tenant])
    assert held.fetchall() == [("u-2",)]


@pytest.mark.parametrize("table", ["contact", "assignment"])
def test_the_directory_is_read_only_for_consumers(consumer: Conn, table: str) -> None:
    for verb in ("UPDATE {} SET user_id = user_id", "DELETE FROM {}", "INSERT INTO {} DEFAULT VALUES"):
        with pytest.raises(errors.InsufficientPrivilege):
            consumer.execute(verb.format(f"platform.{table}").encode())


def test_the_directory_under_plain_names(make_party: Callable[[Group], Party]) -> None:
    ours = make_party("domain")
    with ours.conn.transaction():
        ours.conn.execute("SELECT set_config('search_path', %s, true)", [ours.schema])
        ours.conn.execute("SELECT set_config('app.tenant_id', %s, true)", [ours.tenant])
        ours.conn.execute("INSERT INTO contact (user_id, phone) VALUES ('u-1', '+4930123456')")
        ours.conn.execute("UPDATE contact SET active = false WHERE user_id = 'u-1'")
        ours.conn.execute(
            "INSERT INTO assignment (product, subject_id, role, user_id)"
            " VALUES ('loans', 'L-1', 'applicant', 'u-1')"
        )
        seen = ours.conn.execute("SELECT tenant_id, locale, zone, active FROM contact").fetchall()
        assert seen == [(ours.tenant, "en", "UTC", False)]
        assert ours.conn.execute("DELETE FROM assignment").rowcount == 1


def test_a_contact_of_another_tenant_is_refused(make_party: Callable[[Group], Party]) -> None:
    ours, theirs = make_party("domain"), make_party("domain")
    with pytest.raises(psycopg.Error) as caught:
        ours.conn.execute(
            "INSERT INTO platform.contact (tenant_id, user_id) VALUES (%s, 'u-1')", [theirs.tenant]
        )
    assert caught.value.sqlstate == "TO001"
