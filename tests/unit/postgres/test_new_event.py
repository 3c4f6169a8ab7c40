"""What of an event can be told without asking the database."""

from __future__ import annotations

import json
from collections import ChainMap
from types import MappingProxyType

import pytest

from producers.outbox import MalformedPayloadError, NewEvent


def body(payload: object) -> object:
    made = NewEvent(
        tenant_id="acme",
        product="loans",
        subject_id="L-1",
        event_type="loans.initiated",
        payload=payload,  # type: ignore[arg-type]  # one of them is none on purpose
    )
    return json.loads(made.parameters()["payload"])


@pytest.mark.parametrize("payload", [{"a": 1}, MappingProxyType({"a": 1}), ChainMap({"a": 1}, {"a": 2})])
def test_any_mapping_becomes_a_json_object(payload: object) -> None:
    assert body(payload) == {"a": 1}


@pytest.mark.parametrize("payload", [{"a": float("inf")}, {"a": b"x"}, {"a": "\ud800"}, 7])
def test_what_json_cannot_say_is_refused(payload: object) -> None:
    with pytest.raises(MalformedPayloadError, match=r"the payload of loans\.initiated is no JSON"):
        body(payload)
