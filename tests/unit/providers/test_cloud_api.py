"""The Cloud API's answers: whatever comes, there is a verdict, and acceptance needs a message id."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.providers.cloud_api import (
    ACCOUNT_CODES,
    BUSY_CODES,
    MESSAGE_CODES,
    MESSAGE_LATER_CODES,
    TRANSIENT_CODES,
    read_answer,
)
from connectors.providers.model import MOST_ERROR_CHARACTERS, Answer, Outcome

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
bodies = st.binary(max_size=200) | st.builds(
    lambda key, value: orjson.dumps({key: value}), st.sampled_from(["error", "messages", "x"]), json_values
)


def _error(status: int, **error: object) -> Answer:
    return read_answer(status, {}, orjson.dumps({"error": error}), NOW)


@given(status=st.integers(100, 999), body=bodies)
def test_every_answer_has_a_verdict(status: int, body: bytes) -> None:
    answer = read_answer(status, {"Retry-After": "x"}, body, NOW)
    assert answer.status == status
    assert (answer.outcome is Outcome.ACCEPTED) == (answer.provider_ref is not None)
    assert len(answer.error or "") <= MOST_ERROR_CHARACTERS


def test_each_code_means_one_thing() -> None:
    kinds = (ACCOUNT_CODES, BUSY_CODES, TRANSIENT_CODES, MESSAGE_LATER_CODES, MESSAGE_CODES)
    assert sum(map(len, kinds)) == len(frozenset[int]().union(*kinds))


def test_a_known_code_wins_over_the_status() -> None:
    assert _error(400, code=131016).outcome is Outcome.RETRY
    assert _error(500, code=131026).outcome is Outcome.REJECTED
    assert _error(504, code=131000).outcome is Outcome.RETRY, "the API itself says that it did not take it"


def test_a_phone_number_id_that_the_token_cannot_see_is_the_accounts_fault() -> None:
    answer = _error(400, code=100, error_subcode=33)
    assert (answer.outcome, answer.systematic) == (Outcome.RETRY, True)


def test_an_unknown_code_that_calls_itself_transient_is_tried_again() -> None:
    assert _error(400, code=999999, is_transient=True).outcome is Outcome.RETRY
    assert _error(400, code=999999).outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"messages": []}', b'{"messages": [{"id": ""}]}', b"\xff"]
)
def test_a_success_without_a_reference_is_unknown(body: bytes) -> None:
    assert read_answer(200, {}, body, NOW).outcome is Outcome.UNKNOWN


def test_what_is_kept_of_an_error_is_one_bounded_line() -> None:
    answer = _error(400, code=100, message="two\nlines\x1b[31m " + "x" * 1000)
    assert answer.error is not None
    assert answer.error.startswith("HTTP 400, code 100: two lines")
    assert answer.error.isprintable()
