"""The present holder of a role is told instead of the former, once, on the channels that reach them."""

from __future__ import annotations

from typing import Any

from tests.integration.delivery.conftest import Bench

LOST = ("suppressed", "no_longer_applicant", 0)


def told(bench: Bench) -> list[tuple[Any, ...]]:
    """(user, role, channel, state) of every delivery but those whose role somebody else has."""
    return bench.owner.execute(
        "SELECT user_id, role, channel, state::text FROM platform.delivery"
        " WHERE tenant_id = %s AND coalesce(reason, '') NOT LIKE 'no_longer%%' ORDER BY seq",
        [bench.tenant],
    ).fetchall()


def both_rounds(bench: Bench) -> None:
    """The one that hands over, and the one that finds what it handed."""
    rounds = bench.worker()
    rounds.once()
    rounds.through()


def test_whoever_has_the_role_now_is_told_instead(bench: Bench) -> None:
    delivery = bench.ready()
    bench.person("b", first_name="Grace", locale="de", zone="Europe/Berlin", phone="+4930123456")
    bench.assign("b")
    both_rounds(bench)
    assert bench.row(delivery) == LOST
    assert told(bench) == [("b", "applicant", "whatsapp", "sent")]
    assert [each.to for each in bench.arrivals()] == ["+4930123456"]
    assert bench.nudge_state() == ("sent", None)
    assert bench.owner.execute(
        "SELECT told.role, told.locale, told.zone, told.intent_id = former.intent_id"
        "  FROM platform.notification AS told JOIN platform.notification AS former USING (tenant_id, nudge_id)"
        " WHERE told.tenant_id = %s AND told.user_id = 'b' AND former.user_id = 'a'",
        [bench.tenant],
    ).fetchall() == [("applicant", "de", "Europe/Berlin", True)]


def test_where_the_channel_does_not_reach_them_nobody_is_told(bench: Bench) -> None:
    delivery = bench.ready()
    bench.person("b", phone=None)
    bench.assign("b")
    bench.worker().through()
    assert bench.row(delivery) == LOST
    assert told(bench) == []
    assert bench.nudge_state() == ("cancelled", "suppressed"), "nothing stays pending"


def test_who_takes_over_two_roles_is_told_once(bench: Bench) -> None:
    first = bench.ready()
    event, nudge = bench.owner.execute(
        "SELECT event_id::text, nudge_id::text FROM platform.delivery WHERE delivery_id = %s", [first]
    ).fetchall()[0]
    bench.person("c")
    second = bench.delivery(event, nudge_id=nudge, user="c", role="advisor")
    bench.person("b")
    bench.assign("b")
    bench.assign("b", role="advisor")
    both_rounds(bench)
    assert bench.row(first) == LOST
    assert bench.row(second) == ("suppressed", "no_longer_advisor", 0)
    assert [user for user, *_ in told(bench)] == ["b"]
    assert len(bench.arrivals()) == 1


def test_who_gets_a_role_back_before_anybody_was_told_is_told(bench: Bench) -> None:
    delivery = bench.ready()
    for holder in ("b", "a", "b"):
        if holder == "b" and not _knows(bench, "b"):
            bench.person("b")
        bench.assign(holder)
        bench.worker(calls=False).once()
        queued = [user for user, _, _, state in told(bench) if state == "queued"]
        assert queued == [holder]
    bench.worker().through()
    assert bench.row(delivery) == LOST
    assert told(bench) == [("b", "applicant", "whatsapp", "sent")]
    assert len(bench.arrivals()) == 1


def _knows(bench: Bench, user: str) -> bool:
    return bool(
        bench.owner.execute(
            "SELECT FROM platform.contact WHERE tenant_id = %s AND user_id = %s", [bench.tenant, user]
        ).fetchall()
    )
