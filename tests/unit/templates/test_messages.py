"""What a message is on each channel: its parts, one line where a line is meant, and never over a limit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.products.audience import Channel
from schemas.templates.failure import InvalidTemplates, TemplateFailure
from schemas.templates.rendered import LINE_LIMIT, PARAMETER_LIMIT, header, one_line
from tests.unit.templates.rendering import message, renderer

EMAIL = {
    "en.subject": "Hello {{ payload.x }}\n",
    "en.txt": "{{ payload.x }}",
    "en.html": "<p>{{ payload.x }}</p>",
}


def test_an_email() -> None:
    assert message(EMAIL, channel=Channel.EMAIL, payload={"x": "A & B"}) == {
        "subject": "Hello A & B",
        "text": "A & B",
        "html": "<p>A &amp; B</p>",
    }


def test_in_app_with_and_without_a_title() -> None:
    assert message({"en.txt": "a"}, channel=Channel.INAPP) == {"text": "a"}
    titled = {"en.txt": "a", "en.subject": "b"}
    assert message(titled, channel=Channel.INAPP) == {"text": "a", "title": "b"}


@settings(deadline=None)
@given(st.text(min_size=1))
def test_a_subject_is_one_line_whatever_the_values_hold(value: str) -> None:
    for inside in (value, f"{value}\r\nBcc: eve@example.org", f"\u2028{value}\x85\n{value}\x00"):
        subject = message(EMAIL, channel=Channel.EMAIL, payload={"x": "x" + inside})["subject"]
        assert len(subject) <= LINE_LIMIT
        assert subject.splitlines() == [subject]
        assert not [character for character in subject if ord(character) < 32 or 127 <= ord(character) < 160]


def test_one_line_keeps_the_words() -> None:
    assert one_line(" a\r\n b\tc\u2029d 5\xa0€ ") == "a b c d 5\xa0€"


def test_a_long_subject_is_cut_rather_than_kept_back() -> None:
    assert header("a" * LINE_LIMIT) == "a" * LINE_LIMIT
    assert header("a" * (LINE_LIMIT + 1)) == "a" * (LINE_LIMIT - 1) + "…"


WHATSAPP = {"name": "collect", "parameters": ["{{ payload.x }}", "{{ 125 | money('EUR') }}"]}


def test_a_whatsapp_template() -> None:
    rendered = message(
        {"pt-BR.json": json.dumps(WHATSAPP)}, channel=Channel.WHATSAPP, locale="pt-BR", payload={"x": "Ada"}
    )
    assert rendered == {
        "template": {"name": "collect", "language": "pt_BR", "parameters": ["Ada", "€\xa01,25"]}
    }


def test_a_whatsapp_templates_language_may_be_another() -> None:
    source = json.dumps({"name": "collect", "language": "en_GB"})
    rendered = message({"en.json": source}, channel=Channel.WHATSAPP)
    assert rendered == {"template": {"name": "collect", "language": "en_GB", "parameters": []}}


@settings(deadline=None)
@given(st.text())
def test_no_value_leaves_its_parameter(value: str) -> None:
    payload = {"x": f'x", "name": "other" {{{{ link }}}}\n{value}'}
    rendered = message({"en.json": json.dumps(WHATSAPP)}, channel=Channel.WHATSAPP, payload=payload)[
        "template"
    ]
    assert rendered["name"] == "collect"
    assert rendered["parameters"] == [one_line(payload["x"]), "€1.25"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("", "collect/whatsapp.en.json.j2: parameter 1 is empty"),
        (
            "x" * (PARAMETER_LIMIT + 1),
            f"collect/whatsapp.en.json.j2:3: is longer than {PARAMETER_LIMIT} characters",
        ),
        (None, "collect/whatsapp.en.json.j2:3: is nothing (null)"),
    ],
)
def test_a_parameter_that_whatsapp_would_refuse(value: object, problem: str) -> None:
    source = '{"name": "collect",\n "parameters": [\n"{{ payload.x }}"]}'
    with pytest.raises(TemplateFailure) as failure:
        message({"en.json": source}, channel=Channel.WHATSAPP, payload={"x": value})
    assert str(failure.value).startswith(problem)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{", ":1: is not JSON"),
        ("[" * 60000, ": is not JSON"),
        ("x" * 70000, ": is longer than 65536 characters"),
        ("[]", ":1: must be an object of name, parameters and maybe language"),
        ('{"name": "a", "parms": []}', ":1: must be an object of name, parameters and maybe language"),
        ('{\n"name": "A b"}', ":2: name: lower-case letters, digits and _"),
        ('{"name": "a",\n"language": "English"}', ":2: language: such as en or en_GB"),
        ('{"name": "a",\n"parameters": [1]}', ":2: parameters: a list of texts"),
        ('{"name": "a",\n"parameters": ["{{ linq }}"]}', ":2: there is no linq; did you mean link?"),
    ],
)
def test_json_that_is_no_whatsapp_template(source: str, problem: str) -> None:
    with pytest.raises(InvalidTemplates) as invalid:
        renderer({"en.json": source}, channel=Channel.WHATSAPP)
    (failure,) = invalid.value.failures
    assert str(failure).startswith(f"collect/whatsapp.en.json.j2{problem}")


@pytest.mark.parametrize(
    ("channel", "templates", "problem"),
    [
        (
            Channel.EMAIL,
            {"en.txt": "x"},
            "collect/email.en.subject.j2: is missing; email needs it beside the other parts",
        ),
        (
            Channel.EMAIL,
            {"en.subject": "x"},
            "collect/email.en.txt.j2: is missing; email needs it beside the other parts",
        ),
        (
            Channel.INAPP,
            {"en.txt": "x", "en.html": "x"},
            "collect/inapp.en.html.j2: is no part of a message on inapp",
        ),
        (
            Channel.SMS,
            {"en.txt": "x", "en.subject": "x"},
            "collect/sms.en.subject.j2: is no part of a message on sms",
        ),
        (
            Channel.WHATSAPP,
            {"en.txt": "x", "en.json": "{}"},
            "collect/whatsapp.en.json.j2: is there beside a text; a message is one or the other",
        ),
    ],
)
def test_parts_that_do_not_belong_together(channel: Channel, templates: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidTemplates) as invalid:
        renderer(templates, channel=channel)
    assert str(invalid.value) == problem


@pytest.mark.parametrize(
    ("channel", "length"),
    [(Channel.WHATSAPP, 4096), (Channel.INAPP, 4096), (Channel.SMS, 1530), (Channel.PUSH, 1024)],
)
def test_each_channels_limit(channel: Channel, length: int) -> None:
    templates: dict[str, Any] = {"en.txt": "{{ payload.x }}"}
    assert message(templates, channel=channel, payload={"x": "x" * length})["text"] == "x" * length
    with pytest.raises(TemplateFailure, match=f"is longer than {length} characters"):
        message(templates, channel=channel, payload={"x": "x" * (length + 1)})


@pytest.mark.parametrize(
    "templates", [{"en.txt": "{{ payload.x }}"}, {"en.txt": "x", "en.subject": "{{ payload.x }}"}]
)
def test_a_message_says_something(templates: dict[str, str]) -> None:
    with pytest.raises(TemplateFailure, match="says nothing"):
        message(templates, channel=Channel.INAPP, payload={"x": " \n"})


def test_a_title_of_control_characters_says_nothing() -> None:
    with pytest.raises(TemplateFailure, match="says nothing"):
        message(
            {"en.txt": "x", "en.subject": "{{ payload.x }}"}, channel=Channel.INAPP, payload={"x": "\x00"}
        )


def test_every_template_that_does_not_compile_is_told() -> None:
    with pytest.raises(InvalidTemplates) as invalid:
        renderer({"en.txt": "{{", "de.txt": "{%", "fr.txt": "ok"}, channel=Channel.INAPP)
    assert [failure.file for failure in invalid.value.failures] == [
        "collect/inapp.de.txt.j2",
        "collect/inapp.en.txt.j2",
    ]


def test_the_same_message_every_time() -> None:
    made = [message(EMAIL, channel=Channel.EMAIL, payload={"x": "A"}) for _ in range(3)]
    assert made[0] == made[1] == made[2]
