"""Ids sort by time, are functions of their cause, and say which version they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import InvalidIdError, derived_id, id_time, id_version, uuid7_from

CAUSE = "019a0000-0000-7000-8000-000000000000"
TIMES = st.integers(0, (1 << 48) - 1)
YEAR_9999 = 253_402_300_799_999


@given(TIMES, st.binary(max_size=40))
def test_a_seeded_id_is_a_version_7_uuid_of_its_time(time_ms: int, seed: bytes) -> None:
    made = uuid7_from(time_ms, seed)
    assert (UUID(made).version, UUID(made).variant) == (7, "specified in RFC 4122")
    assert str(UUID(made)) == made
    assert UUID(made).int >> 80 == time_ms


@given(st.integers(0, YEAR_9999), st.binary(max_size=40))
def test_the_time_in_an_id_is_read_back(time_ms: int, seed: bytes) -> None:
    assert id_time(uuid7_from(time_ms, seed)) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        milliseconds=time_ms
    )


@given(st.lists(TIMES, min_size=2, unique=True))
def test_ids_sort_as_their_times(times: list[int]) -> None:
    assert sorted(uuid7_from(t, b"x") for t in times) == [uuid7_from(t, b"x") for t in sorted(times)]


def test_the_same_seed_is_the_same_id_and_another_is_another() -> None:
    assert uuid7_from(5, b"a") == uuid7_from(5, b"a")
    assert len({uuid7_from(5, seed) for seed in (b"a", b"b", b"")}) == 3


@pytest.mark.parametrize("time_ms", [-1, 1 << 48])
def test_a_time_beyond_48_bits_is_refused(time_ms: int) -> None:
    with pytest.raises(InvalidIdError, match="48 bits"):
        uuid7_from(time_ms, b"")


@given(TIMES, st.lists(st.text(), max_size=3))
def test_a_derived_id_is_a_version_8_uuid_of_its_causes_time(time_ms: int, parts: list[str]) -> None:
    parts = [part.encode("utf-8", "ignore").decode() for part in parts]
    cause = uuid7_from(time_ms, b"cause")
    made = derived_id(cause, *parts)
    assert (id_version(made), UUID(made).variant) == (8, "specified in RFC 4122")
    assert UUID(made).int >> 80 == time_ms
    assert made == derived_id(cause, *parts)


def test_parts_are_kept_apart() -> None:
    made = {
        derived_id(CAUSE),
        derived_id(CAUSE, ""),
        derived_id(CAUSE, "ab"),
        derived_id(CAUSE, "a", "b"),
        derived_id(CAUSE, "b", "a"),
        derived_id(derived_id(CAUSE), "ab"),
    }
    assert len(made) == 6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "019a0000",
        CAUSE.upper(),
        CAUSE.replace("-", ""),
        f"{{{CAUSE}}}",
        f"{CAUSE}\n",
        "019a0000-0000-7000-0000-000000000000",
        "019a0000-0000-7000-8000-00000000000g",
    ],
)
def test_other_texts_are_no_ids(text: str) -> None:
    assert id_version(text) is None
    with pytest.raises(InvalidIdError, match="lower-case UUID"):
        id_time(text)


def test_an_id_without_a_time_has_none_to_read() -> None:
    random = "8c0f6fb7-4f10-4c1c-9a63-64a5a0b6a5a1"
    assert id_version(random) == 4
    with pytest.raises(InvalidIdError, match="version 7 or 8"):
        id_time(random)
