"""What became of a message, in words: every state, every reason; and what is never shown of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.providers.model import Answer, Outcome
from consumers.delivery.decide import Candidate, Recorded, Standing, claim, record
from deploy.cli.deliveries import flat
from deploy.cli.messages import (
    FAILED,
    HELD,
    SUPPRESSED,
    WAITING,
    Attempt,
    Delivery,
    Notice,
    answered,
    by_notice,
    headed,
    in_words,
    shape,
    to_whom,
    with_attempts,
)
from schemas.states import DeliveryState, FailReason, HoldReason, SuppressReason, no_longer

AT = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
QUEUED = Delivery(
    delivery_id="d-1",
    tenant_id="acme",
    product="loans",
    subject_id="L-1",
    kind="loans.sanctioned",
    user_id="u-1",
    role="applicant",
    channel="whatsapp",
    account="main",
    state=DeliveryState.QUEUED,
    reason=None,
    due_at=AT,
    expires_at=None,
    lease_until=None,
    attempts=0,
    first_attempt_at=None,
    provider_ref=None,
    notification_id="n-1",
    nudge_id=None,
    event_id="e-1",
    lane="events.loans",
    seq=1,
    created_at=AT,
    updated_at=AT,
)
ATTEMPT = Attempt("d-1", 1, AT, AT, "accepted", 200, "wamid.1", None, 34)


def became(state: DeliveryState, reason: str | None = None, **columns: Any) -> str:
    return in_words(replace(QUEUED, state=state, reason=reason, **columns), [])


def test_every_word_of_the_vocabularies_has_its_sentence() -> None:
    assert set(SUPPRESSED) == set(SuppressReason)
    assert set(FAILED) == set(FailReason)
    assert set(HELD) == set(HoldReason)


def test_whatever_a_claim_or_a_record_puts_back_has_its_sentence() -> None:
    ready = Candidate(
        "d-1", "acme", DeliveryState.QUEUED, AT, None, None, Standing.NONE, True, "applicant", True, True, "+49", True,
        True, False,
    )  # fmt: skip
    held_back = [
        ready._replace(is_complete=False),
        ready._replace(has_account=False),
        ready._replace(is_blocked=True),
    ]
    put_back = {each.reason for each in claim(held_back, now=AT, real=AT, pace=1.0, take=lambda _: True)} | {
        _recorded(Answer(Outcome.RETRY)).reason
    }

    assert put_back | {"template_failed"} == set(WAITING)


def _recorded(answer: Answer) -> Recorded:
    return record(answer, attempts=1, first_attempt_at=AT, now=AT, pace=1.0, may_resend=True, chance=0.5)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (became(DeliveryState.QUEUED), "queued, due 2026-12-01T09:00:00Z"),
        (became(DeliveryState.QUEUED, "retry"), "to be tried again, due 2026-12-01T09:00:00Z"),
        (became(DeliveryState.SENDING), "being sent"),
        (became(DeliveryState.SENT, provider_ref="wamid.1"), "sent as wamid.1"),
        (became(DeliveryState.SENT, channel="inapp"), "shown"),
        (became(DeliveryState.FAILED, FailReason.REJECTED), "failed: the provider refused it"),
        (became(DeliveryState.SUPPRESSED, SuppressReason.SUPERSEDED), "not sent: superseded before it went out"),
        (became(DeliveryState.SUPPRESSED, no_longer("applicant")), "not sent: the person is no longer its applicant"),
        (became(DeliveryState.SUPPRESSED, "a_newer_reason"), "not sent: a_newer_reason"),
        (became(DeliveryState.EXPIRED, "expired"), "not sent: it had expired"),
    ],
)  # fmt: skip
def test_a_state_in_words(said: str, wanted: str) -> None:
    assert said == wanted


def test_what_is_on_hold_says_what_to_type() -> None:
    said = became(DeliveryState.HELD, HoldReason.UNKNOWN_OUTCOME)

    assert "may have gone out" in said
    assert "`tellonce deliveries retry`" in said


def test_the_last_answer_is_told_with_its_number_status_and_latency() -> None:
    refused = replace(
        ATTEMPT, attempt=2, outcome="rejected", status=400, error="no such number", latency_ms=1_034
    )
    (message,) = with_attempts(
        [replace(QUEUED, state=DeliveryState.FAILED, reason=FailReason.REJECTED)], [ATTEMPT, refused]
    )

    assert message.words == (
        "failed: the provider refused it (attempt 2, rejected, status 400, 1,034 ms: no such number)"
    )
    assert message.attempts == [ATTEMPT, refused]
    assert headed(message).startswith("loans.sanctioned to applicant u-1 on whatsapp: failed")
    assert answered(replace(ATTEMPT, status=None, latency_ms=None)) == "attempt 1, accepted"


def test_each_delivery_has_its_own_attempts() -> None:
    other = replace(QUEUED, delivery_id="d-2")

    told = with_attempts([QUEUED, other], [ATTEMPT, replace(ATTEMPT, delivery_id="d-2", attempt=7)])

    assert [[each.attempt for each in message.attempts] for message in told] == [[1], [7]]


def test_messages_stand_with_their_notices_in_the_order_of_their_preparation() -> None:
    notices = [
        Notice(name, "e-1", None, "loans.sanctioned", "u-1", "applicant", "en", "UTC", AT)
        for name in ("n-1", "n-2", "n-3")
    ]
    prepared = [
        replace(QUEUED, delivery_id="d-3", seq=3),
        replace(QUEUED, delivery_id="d-2", seq=2, notification_id="n-2"),
        QUEUED,
    ]

    told = by_notice(notices, with_attempts(prepared, []))

    assert [[each.delivery.delivery_id for each in notified.messages] for notified in told] == [
        ["d-1", "d-3"],
        ["d-2"],
        [],
    ]


def test_an_address_is_never_named() -> None:
    assert to_whom(None, "address") == "an address"
    assert to_whom("u-1", "advisor") == "advisor u-1"


def test_a_body_s_shape_tells_nothing_of_what_it_says() -> None:
    body = {
        "template": {"name": "offer", "parameters": ["Ada", "1,000 €"]},
        "html": None,
        "buttons": 2,
    }

    assert shape(body) == {
        "template": {"name": "text of 5", "parameters": ["text of 3", "text of 7"]},
        "html": None,
        "buttons": "int",
    }
    assert flat("body", shape(body))[:2] == [
        ("body.template.name", "text of 5"),
        ("body.template.parameters.0", "text of 3"),
    ]
