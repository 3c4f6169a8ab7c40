"""Everything that can be wrong with a product's folder is told with its file, its line and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.registry import check_product, check_schemas
from tests.contract.schemas.conftest import Folder


def test_nothing_is_wrong(cards: Folder) -> None:
    assert cards.problems() == []


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        pytest.param(
            "ends_on: [cards.closed]",
            "ends_on: [cards.closed, cards.verified]",
            ["product.yaml:7: cards.verified is step and end; an event type has one role"],
            id="two roles",
        ),
        pytest.param(
            "    on: cards.blocked",
            "    on: cards.closed",
            ["product.yaml:13: cards.closed is end and lifecycle; an event type has one role"],
            id="an end that also fires",
        ),
        pytest.param(
            "nudge: cards.collect,",
            "nudge: cards.colect,",
            ["product.yaml:6: nudge cards.colect is not among the kinds; did you mean cards.collect?"],
            id="missing kind",
        ),
        pytest.param(
            "  ends_on:",
            "  end_on:",
            ["product.yaml:7: journey.end_on: nobody reads this key; is it misspelt?"],
            id="misspelt key",
        ),
        pytest.param(
            "after: 0s",
            "afer: 0s",
            [
                "product.yaml:6: journey.steps.1.afer: nobody reads this key; is it misspelt?",
                "product.yaml:6: journey.steps.1.after: Field required",
            ],
            id="misspelt key in a step",
        ),
        pytest.param(
            "after: 30m",
            "after: 30",
            ["product.yaml:5: journey.steps.0.after: 30 is not a duration; write 30s, 15m, 4h or 2d"],
            id="bad duration",
        ),
        pytest.param(
            "after: 30m",
            "after: 400d",
            ["product.yaml:5: journey.steps.0.after: '400d' is longer than 366 days"],
            id="too long a duration",
        ),
        pytest.param(
            "on: cards.verified",
            "on: cards.ordered",
            ["product.yaml:6: cards.ordered is a step already; a step has one rank"],
            id="duplicate step",
        ),
        pytest.param(
            "on: cards.verified",
            "on: cards.verifed",
            ["product.yaml:6: cards.verifed has no schema events/verifed.avsc; did you mean cards.verified?"],
            id="misspelt step",
        ),
        pytest.param(
            "  cards.collect:\n",
            "  loans.collect:\n",
            [
                "product.yaml:6: nudge cards.collect is not among the kinds; did you mean loans.collect?",
                "product.yaml:11: loans.collect is another product's name; this one's is cards.collect",
            ],
            id="another product's kind",
        ),
        pytest.param(
            "payload.owner_id",
            "payload.owner",
            ["product.yaml:13: cards.blocked: cards.blocked has no payload field owner"],
            id="payload field that is not there",
        ),
        pytest.param(
            "applicant, channels: [inapp]",
            "payload.holder, channels: [inapp]",
            ["product.yaml:11: cards.collect: cards.verified has no payload field holder"],
            id="payload field that the step's event lacks",
        ),
        pytest.param(
            "  cards.collect:\n",
            "  cards.finish_order:\n",
            [
                "product.yaml:6: nudge cards.collect is not among the kinds",
                "product.yaml:11: cards.finish_order is there already; only the last would count",
                "templates/collect/inapp.en.txt.j2: belongs to no kind of this product",
                "templates/finish_order/email.en.subject.j2: nobody is told of finish_order on email",
                "templates/finish_order/email.en.txt.j2: nobody is told of finish_order on email",
                "templates/finish_order/inapp.en.txt.j2: is missing: cards.finish_order is told on inapp",
            ],
            id="a key twice",
        ),
        pytest.param(
            "subject: card\n",
            "subject: card\nconfluent_ids:\n  7: cards.ordered@1\n",
            ["product.yaml:4: confluent_ids: 7 names cards.ordered@1, which is not recorded"],
            id="registry id of nothing recorded",
        ),
    ],
)
def test_product_yaml(cards: Folder, old: str, new: str, problems: list[str]) -> None:
    cards.edit("product.yaml", old, new)
    assert cards.problems() == problems


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"product: cards\n  subject: [", "product.yaml:2: is not YAML: mapping values are not allowed here"),
        (b"product: cards\nsubject: 'card\n", "product.yaml:3: is not YAML: found unexpected end of stream"),
        (b"\xff\xfe\xff", "product.yaml: is not YAML: 'utf-8' codec can't decode byte 0xff in position 0"),
        (b"product: cards\nsubject: 2026-99-99\n", "product.yaml: is not YAML: month must be in 1..12"),
        (b"", "product.yaml:1: must be a mapping that begins with `product:`"),
        (b"- cards\n", "product.yaml:1: must be a mapping that begins with `product:`"),
    ],
)
def test_broken_yaml(cards: Folder, content: bytes, problem: str) -> None:
    cards.write("product.yaml", content)
    (found,) = cards.problems()
    assert found.startswith(problem)


def test_a_schema_that_is_missing(cards: Folder) -> None:
    cards.remove("events/verified.avsc")
    assert cards.problems() == [
        "product.yaml:6: cards.verified has no schema events/verified.avsc",
        "samples/verified.json: belongs to no event type of this product",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            ', "doc": "The card\'s owner."',
            "",
            "events/closed.avsc:6: field owner_id has no doc; say what it means",
        ),
        ('"type": "record"', '"type": "enum"', "events/closed.avsc:1: must be a record"),
        (
            '"namespace": "cards"',
            '"namespace": "loans"',
            "events/closed.avsc:1: declares loans.closed; by its place",
        ),
        (
            '"name": "closed"',
            '"name": "shut"',
            "events/closed.avsc:1: declares cards.shut; by its place it must be",
        ),
        ('"type": "string"', '"type": "text"', "events/closed.avsc: is not an Avro schema: "),
        ('"type": "record",', '"type": "record"', "events/closed.avsc:3: is not an Avro schema: "),
        (
            '"type": "string"',
            '"type": "bytes", "default": "x"',
            "events/closed.avsc:6: field owner_id: default 'x'",
        ),
        (
            '"type": "string"',
            '"type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0',
            "events/closed.avsc:6: field owner_id: default 0 would read differently in Avro and in JSON",
        ),
    ],
)
def test_a_schema_that_is_none(cards: Folder, old: str, new: str, problem: str) -> None:
    cards.edit("events/closed.avsc", old, new)
    assert any(found.startswith(problem) for found in cards.problems()), cards.problems()


@pytest.mark.parametrize(
    "content", ['"int"', '["null", "int"]', "5", "null", '{"type": "array", "items": "int"}']
)
def test_avro_that_is_no_record(cards: Folder, content: str) -> None:
    cards.write("events/closed.avsc", content)
    assert "events/closed.avsc:1: must be a record: an event's payload has named fields" in cards.problems()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{\n  oops\n}", "samples/closed.json:2: is not JSON: "),
        (b'{"owner_id": "\xff"}', "samples/closed.json: is not UTF-8: "),
        ("{}", "samples/closed.json:1: cards.closed: owner_id: expected a value, the field is required"),
        ("[]", "samples/closed.json:1: cards.closed: the body: expected an object"),
        (
            '{\n  "owner_id": "u",\n  "ownr": 5\n}',
            "samples/closed.json:3: ownr is no field of cards.closed",
        ),
    ],
)
def test_a_sample_that_is_none(cards: Folder, content: str | bytes, problem: str) -> None:
    cards.write("samples/closed.json", content)
    (found,) = cards.problems()
    assert found.startswith(problem)


def test_a_sample_that_is_missing(cards: Folder) -> None:
    cards.remove("samples/closed.json")
    assert cards.problems() == [
        "samples/closed.json: is missing; every event type has a sample payload (cards.closed)"
    ]


def test_a_template_that_is_missing(cards: Folder) -> None:
    cards.remove("templates/blocked/inapp.en.txt.j2")
    cards.write("templates/blocked/inapp.de.txt.j2", "Ihre Karte.")
    assert cards.problems() == [
        "templates/blocked/inapp.en.txt.j2: is missing: cards.blocked is told on inapp"
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("blockd/email.de.txt.j2", "belongs to no kind of this product; did you mean cards.blocked?"),
        ("blocked/sms.de.txt.j2", "nobody is told of blocked on sms"),
        ("blocked/email.txt.j2", "is no template's place; that is <kind>/<channel>.<locale>."),
        ("blocked/email.en.text.j2", "is no template's place; that is <kind>/<channel>.<locale>."),
    ],
)
def test_a_template_that_nobody_would_read(cards: Folder, path: str, problem: str) -> None:
    cards.write(f"templates/{path}", "Ihre Karte.")
    (found,) = cards.problems()
    assert found.startswith(f"templates/{path}: {problem}")


@pytest.mark.parametrize("path", ["blocked/inapp.de-AT.txt.j2", "blocked/digest/email.en.subject.j2"])
def test_further_templates_of_a_kind(cards: Folder, path: str) -> None:
    cards.write(f"templates/{path}", "Your card.")
    assert cards.problems() == []


def test_a_template_that_is_no_text(cards: Folder) -> None:
    cards.write("templates/collect/inapp.en.txt.j2", b"\xff")
    (problem,) = [found for found in cards.problems() if "UTF-8" in found]
    assert problem.startswith("templates/collect/inapp.en.txt.j2: is not UTF-8")


def test_everything_is_told_at_once_in_the_files_order(cards: Folder) -> None:
    cards.edit("product.yaml", "nudge: cards.collect", "nudge: cards.collct")
    cards.edit("product.yaml", "nudge: cards.finish_order", "nudge: cards.finish_ordr")
    cards.remove("samples/closed.json")
    assert [found.split(" ")[0] for found in cards.problems()] == [
        "product.yaml:5:",
        "product.yaml:6:",
        "samples/closed.json:",
    ]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (problem,) = check_product(tmp_path / "nowhere")
    assert str(problem) == f"{tmp_path}/nowhere/product.yaml: {tmp_path}/nowhere is not a folder"
    assert check_schemas(tmp_path / "nowhere") == [problem]
    (problem,) = check_product(tmp_path)
    assert str(problem) == f"{tmp_path}/product.yaml: is missing; it says what the product is"
