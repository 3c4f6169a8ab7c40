"""What the loan service writes is what its product promises."""

from __future__ import annotations

from typing import Any

import orjson
from psycopg import Connection

from connectors.registry import load_catalogue
from producers.products.loans.application import Move
from producers.products.loans.service import LoanService
from schemas.codec import AVRO_TYPE
from tests.integration.loans.test_service import LEAD, whole_journey


def test_every_payload_is_valid_and_says_nothing_that_the_schema_does_not(
    loans: LoanService, domain: Connection[Any], tenant: str
) -> None:
    whole_journey(loans)
    loans_product = load_catalogue().product("loans")
    rows = domain.execute(
        "SELECT event_type, content_type, payload FROM platform.outbox WHERE tenant_id = %s AND subject_id = %s",
        [tenant, LEAD],
    ).fetchall()
    assert {event_type for event_type, _, _ in rows} == set(Move)
    for event_type, content_type, body in rows:
        contract = loans_product.events[event_type]
        payload = contract.read(bytes(body), content_type.encode())
        assert contract.read(contract.avro_body(payload), AVRO_TYPE) == payload
        assert orjson.loads(body) == payload, event_type
