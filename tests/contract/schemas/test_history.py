"""A published schema is recorded, never changed, and what it wrote stays readable."""

from __future__ import annotations

import pytest

from connectors.registry import InvalidProduct, check_schemas, load_catalogue, record_schemas
from schemas.codec import AVRO_TYPE
from tests.contract.schemas.conftest import EVENTS, Folder

OPTIONAL = {"name": "amount", "type": ["null", "long"], "default": None, "doc": "In the minor unit."}


@pytest.fixture
def recorded(cards: Folder) -> Folder:
    record_schemas(cards.path)
    return cards


def found(folder: Folder) -> list[str]:
    return [str(problem).removeprefix(f"{folder.path}/") for problem in check_schemas(folder.path)]


def history(folder: Folder) -> dict[str, bytes]:
    root = folder.path / "history"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.avsc")}


def test_a_new_product_is_recorded_whole(cards: Folder) -> None:
    assert found(cards) == sorted(
        f"events/{event}.avsc: is not recorded as the newest version; run `tellonce schemas record`"
        for event in EVENTS
    )
    written = record_schemas(cards.path)
    assert sorted(written) == sorted(cards.path / f"history/{event}/1.avsc" for event in EVENTS)
    assert found(cards) == []


def test_unchanged_nothing_is_recorded(recorded: Folder) -> None:
    before = history(recorded)
    assert record_schemas(recorded.path) == []
    assert history(recorded) == before


def test_another_doc_is_no_new_version(recorded: Folder) -> None:
    recorded.edit("events/ordered.avsc", "The card's owner.", "Whose card it is.")
    assert (found(recorded), record_schemas(recorded.path)) == ([], [])


def test_a_new_optional_field_is_version_2_and_version_1_stays(recorded: Folder) -> None:
    before = history(recorded)
    old = load_catalogue([recorded.path]).event("cards.ordered").avro_body({"owner_id": "u-1"})
    recorded.add_field("ordered", **OPTIONAL)
    assert found(recorded) == [
        "events/ordered.avsc: is not recorded as the newest version; run `tellonce schemas record`"
    ]
    assert record_schemas(recorded.path) == [recorded.path / "history/ordered/2.avsc"]
    assert {name: body for name, body in history(recorded).items() if name in before} == before
    assert found(recorded) == []
    contract = load_catalogue([recorded.path]).event("cards.ordered")
    assert contract.read(old, AVRO_TYPE) == {"owner_id": "u-1", "amount": None}


def test_a_breaking_change_is_refused_and_nothing_is_written(recorded: Folder) -> None:
    recorded.add_field("verified", **OPTIONAL)
    recorded.edit("events/ordered.avsc", '"string"', '"long"')
    recorded.edit("samples/ordered.json", '"u-1"', "1")
    before = history(recorded)
    with pytest.raises(InvalidProduct) as caught:
        record_schemas(recorded.path)
    assert str(caught.value) == (
        f"{recorded.path}/events/ordered.avsc: cannot read what version 1 wrote: owner_id: was string, is long"
    )
    assert history(recorded) == before


def test_every_recorded_version_counts_not_only_the_last(recorded: Folder) -> None:
    recorded.add_field("ordered", **OPTIONAL)
    record_schemas(recorded.path)
    recorded.edit("events/ordered.avsc", '"default": null,', "")
    assert found(recorded) == [
        "events/ordered.avsc: cannot read what version 1 wrote: "
        "amount: is new and has no default, so older bodies have no value for it"
    ]


def test_a_removed_event_is_told(recorded: Folder) -> None:
    recorded.edit("product.yaml", "  ends_on: [cards.closed]\n", "")
    recorded.remove("events/closed.avsc")
    recorded.remove("samples/closed.json")
    assert found(recorded) == ["events/closed.avsc: is gone, and bodies of it may still be in topics"]
    with pytest.raises(InvalidProduct, match="is gone"):
        record_schemas(recorded.path)


def test_a_gap_in_the_versions_is_told(recorded: Folder) -> None:
    recorded.add_field("ordered", **OPTIONAL)
    record_schemas(recorded.path)
    recorded.remove("history/ordered/1.avsc")
    assert recorded.problems() == ["history/ordered: versions [2] have a gap; restore the missing one"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("history/ordered/one.avsc", None),
        ("history/ordered/02.avsc", None),
        ("history/ordered/0.avsc", None),
        ("history/1.avsc", None),
        ("history/closed/2.avsc", None),
        ("history/ordered/2.avsc", "{"),
        ("history/ordered/2.avsc", '"int"'),
        ("history/ordered/2.avsc", '{"type": "record", "name": "ordered"}'),
    ],
)
def test_a_file_that_is_no_recorded_version_is_told(recorded: Folder, file: str, content: str | None) -> None:
    recorded.write(
        file, content if content is not None else (recorded.path / "events/ordered.avsc").read_text()
    )
    (problem,) = recorded.problems()
    assert problem.startswith(f"{file}: ")


def test_a_registry_id_names_a_recorded_version(recorded: Folder) -> None:
    recorded.edit("product.yaml", "subject: card\n", "subject: card\nconfluent_ids: {7: cards.ordered@1}\n")
    contract = load_catalogue([recorded.path]).event("cards.ordered")
    body = b"\x00\x00\x00\x00\x07" + contract.avro_body({"owner_id": "u-1"})[10:]
    assert contract.read(body, AVRO_TYPE) == {"owner_id": "u-1"}


def test_a_broken_folder_records_nothing(cards: Folder) -> None:
    cards.write("events/ordered.avsc", "{")
    with pytest.raises(InvalidProduct, match=r"events/ordered\.avsc:1: is not an Avro schema"):
        record_schemas(cards.path)
    assert not (cards.path / "history").exists()
    assert any("is not an Avro schema" in problem for problem in found(cards))
