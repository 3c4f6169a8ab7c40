"""What is wrong with a product's templates is told by the check, with file, line and reason."""

from __future__ import annotations

import pytest

from tests.contract.schemas.conftest import Folder

TEXT = "templates/blocked/inapp.en.txt.j2"
NULL = "is nothing (null); say what stands in its place, such as {{ name or 'there' }}"
SAMPLE = "with the sample of cards.blocked"


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        pytest.param(
            "a\n{{ link", 2, "unexpected end of template, expected 'end of print statement'.", id="syntax"
        ),
        pytest.param("a\nb\n{{ linq }}", 3, "there is no linq; did you mean link?", id="unknown name"),
        pytest.param(
            "a\n{{ payload.owner_di }}",
            2,
            f"there is no owner_di here; did you mean owner_id? ({SAMPLE})",
            id="payload field that the event lacks",
        ),
        pytest.param(
            "a\n\n{{ recipient.first_name }}",
            3,
            f"{NULL} ({SAMPLE}, and all null that can be)",
            id="a name unknown",
        ),
        pytest.param(
            "{{ advisor.first_name }}", 1, f"{NULL} ({SAMPLE}, and all null that can be)", id="no advisor"
        ),
        pytest.param(
            "{{ due_at | date }}",
            1,
            f"date: takes an instant or a day, not nothing (null) ({SAMPLE}, and all null that can be)",
            id="sent at once",
        ),
        pytest.param("{{ link | shout }}", 1, "No filter named 'shout'.", id="unknown filter"),
        pytest.param(
            "{{ payload | length }}{% include 'x' %}",
            1,
            "include is nothing a template may use",
            id="include",
        ),
        pytest.param(
            "{{ 'a' if payload.owner_id == 'x' }}", 0, f"says nothing ({SAMPLE})", id="an if without else"
        ),
        pytest.param("{# nothing #}\n", 0, f"says nothing ({SAMPLE})", id="only a comment"),
        pytest.param("x" * 4097, 0, f"is longer than 4096 characters ({SAMPLE})", id="too long to show"),
        pytest.param("x" * 65537, 0, "is longer than 65536 characters", id="too long to compile"),
    ],
)
def test_a_text(cards: Folder, source: str, line: int, problem: str) -> None:
    cards.write(TEXT, source)
    where = f"{TEXT}:{line}" if line else TEXT
    assert cards.problems() == [f"{where}: {problem}"]


def test_a_nullable_field_is_rendered_as_null_too(cards: Folder) -> None:
    cards.add_field("blocked", name="why", type=["null", "string"], doc="The reason.", default=None)
    cards.write("samples/blocked.json", '{"owner_id": "u-1", "why": "lost"}')
    cards.write(TEXT, "Blocked: {{ payload.why }}")
    assert cards.problems() == [f"{TEXT}:1: {NULL} ({SAMPLE}, and all null that can be)"]
    cards.write(TEXT, "Blocked{% if payload.why %}: {{ payload.why }}{% endif %}")
    assert cards.problems() == []


def test_every_event_that_fires_the_kind_is_tried(cards: Folder) -> None:
    cards.add_field("ordered", name="model", type="string", doc="Which card.")
    cards.write("samples/ordered.json", '{"owner_id": "u-1", "model": "gold"}')
    cards.write("templates/finish_order/email.en.txt.j2", "Your {{ payload.model }} card.")
    assert cards.problems() == []
    cards.edit("product.yaml", "nudge: cards.collect,", "nudge: cards.finish_order,")
    assert cards.problems() == [
        "templates/finish_order/email.en.txt.j2:1: there is no model here (with the sample of cards.verified)"
    ]


def test_a_kind_that_only_rules_fire_can_count_on_no_payload(cards: Folder) -> None:
    cards.edit("product.yaml", "    on: cards.blocked\n", "")
    cards.write(TEXT, "{{ payload.owner_id }}")
    assert cards.problems() == [f"{TEXT}:1: there is no owner_id here (without a payload)"]


@pytest.mark.parametrize(
    ("file", "source", "problem"),
    [
        (
            "blocked/email.de.txt.j2",
            "x",
            "blocked/email.de.subject.j2: is missing; email needs it beside the other parts",
        ),
        (
            "blocked/email.de.html.j2",
            "x",
            "blocked/email.de.subject.j2: is missing; email needs it beside the other parts",
        ),
        ("blocked/inapp.en.html.j2", "x", "blocked/inapp.en.html.j2: is no part of a message on inapp"),
        ("blocked/inapp.xx.txt.j2", "x", "blocked/inapp.xx.txt.j2: no such language: xx"),
        ("blocked/email.en.subject.j2", "one\ntwo", "blocked/email.en.subject.j2:2: is one line"),
        (
            "blocked/email.en.subject.j2",
            " \n",
            "blocked/email.en.subject.j2: says nothing (with the sample of cards.blocked)",
        ),
        (
            "blocked/digest/email.en.txt.j2",
            "{% for",
            "blocked/digest/email.en.txt.j2:1: unexpected 'end of template'",
        ),
    ],
)
def test_the_parts_of_a_message(cards: Folder, file: str, source: str, problem: str) -> None:
    cards.write(f"templates/{file}", source)
    (found,) = cards.problems()
    assert found.startswith(f"templates/{problem}")


def test_each_locale_is_rendered(cards: Folder) -> None:
    cards.write("templates/blocked/inapp.de.txt.j2", "Ihre Karte, {{ recipient.first_name }}")
    (problem,) = cards.problems()
    assert problem.startswith("templates/blocked/inapp.de.txt.j2:1: is nothing (null)")


def test_a_product_with_kinds_has_templates(cards: Folder) -> None:
    for path in sorted((cards.path / "templates").rglob("*.j2")):
        cards.remove(str(path.relative_to(cards.path)))
    assert [problem.split(":")[0] for problem in cards.problems()] == [
        "templates/blocked/email.en.txt.j2",
        "templates/blocked/inapp.en.txt.j2",
        "templates/collect/inapp.en.txt.j2",
        "templates/finish_order/email.en.txt.j2",
    ]
