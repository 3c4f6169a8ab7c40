"""What a template cannot do, whoever wrote it, and what a value cannot do, whoever sent it."""

from __future__ import annotations

import html
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.templates.context import NAMES
from schemas.templates.failure import TemplateFailure
from schemas.templates.sandbox import SOURCE_LIMIT, Compiled
from tests.unit.templates.rendering import FILE, text_of


def failure_of(source: str, payload: dict[str, Any] | None = None, **more: Any) -> TemplateFailure:
    """How a template text fails."""
    with pytest.raises(TemplateFailure) as failure:
        text_of(source, payload, **more)
    return failure.value


@settings(deadline=None)
@given(st.text())
def test_a_value_is_text_and_never_a_template(value: str) -> None:
    for injected in (value, "{{ link }}" + value, value + "{% for a in payload %}{{ a }}{% endfor %}"):
        assert text_of("<{{ payload.x }}>", {"x": injected}, limit=10**6) == f"<{injected}>"


@settings(deadline=None)
@given(st.text())
def test_a_value_is_text_and_never_markup(value: str) -> None:
    text = text_of('<a title="{{ payload.x }}">', {"x": value + "\"><script>&'"}, escape=True, limit=10**6)
    inside = text.removeprefix('<a title="').removesuffix('">')
    assert not {"<", ">", '"', "'"} & set(inside)
    assert html.unescape(inside) == html.unescape(html.escape(value + "\"><script>&'"))


def test_only_html_is_escaped() -> None:
    assert text_of("{{ tenant.name }}") == "Acme & Sons"
    assert text_of("{{ tenant.name }}", escape=True) == "Acme &amp; Sons"


@pytest.mark.parametrize(
    "source",
    [
        "{{ payload.__class__ }}",
        "{{ payload['__class__'] }}",
        "{{ link.__class__.__mro__ }}",
        "{{ link.upper }}",
        "{{ link.format }}",
        "{{ payload.keys }}",
        "{{ occurred_at.year }}",
        "{% for a in payload.list %}{{ loop.__class__ }}{% endfor %}",
        "{% for a in payload.list %}{{ loop.cycle }}{% endfor %}",
    ],
)
def test_nothing_has_attributes(source: str) -> None:
    assert failure_of(source, {"list": [1]}).missing is not None


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "update"])
def test_a_payload_field_may_be_called_as_a_method_is(name: str) -> None:
    assert text_of(f"{{{{ payload.{name} }}}}", {name: "mine"}) == "mine"


@pytest.mark.parametrize(
    "source",
    [
        "{{ link() }}",
        "{{ payload.get('x') }}",
        "{% include 'x' %}",
        "{% extends 'x' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% block x %}{% endblock %}",
        "{% macro f() %}{% endmacro %}",
        "{% call f() %}{% endcall %}",
        "{% filter upper %}{% endfilter %}",
        "{% set x = 1 %}",
        "{% set x %}{% endset %}",
        "{% with x = 1 %}{% endwith %}",
        "{% autoescape false %}{% endautoescape %}",
        "{{ link ~ link }}",
        "{{ 9 ** 9 }}",
        "{{ link[1:] }}",
        "{{ {'a': 1}.a }}",
    ],
)
def test_constructs_that_are_none(source: str) -> None:
    failure = failure_of(f"\n{source}")
    assert failure.what.endswith("is nothing a template may use")
    assert failure.line == 2


@pytest.mark.parametrize(
    "name",
    ["safe", "join", "replace", "center", "indent", "format", "attr", "map", "tojson", "pprint", "batch"],
)
def test_filters_that_are_none(name: str) -> None:
    assert failure_of(f"{{{{ link | {name} }}}}").what == f"No filter named '{name}'."


@pytest.mark.parametrize(
    "name", ["range", "lipsum", "dict", "namespace", "cycler", "self", "caller", "_locale", "_zone"]
)
def test_names_that_are_none(name: str) -> None:
    assert failure_of(f"{{{{ {name} }}}}").what.startswith(f"there is no {name}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 1000000000 }}",
        "{{ link + link }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ [1] * 1000000000 }}",
        "{{ true + 1 }}",
    ],
)
def test_arithmetic_is_for_numbers(source: str) -> None:
    assert "is for numbers" in failure_of(source).what


def test_arithmetic() -> None:
    assert (
        text_of("{{ payload.n * 2 + 1 - 3 }} {{ payload.n // 2 }} {{ payload.n % 2 }}", {"n": 5}) == "8 2 1"
    )
    assert failure_of("{{ 1 / 0 }}").what == "does not render (ZeroDivisionError)"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{% for a in [payload, payload] %}{% endfor %}", "a loop goes over a list that the event has"),
        ("{% for a in payload.x | default('y') %}{% endfor %}", "a loop goes over a list that the event has"),
        (
            "{% for a in payload.x %}{% for b in payload.x %}{% endfor %}{% endfor %}",
            "a loop in a loop goes over a part of the outer one's item",
        ),
        (
            "{% for a in payload.x %}{% for b in a %}{% for c in payload.x %}{% endfor %}{% endfor %}{% endfor %}",
            "a loop in a loop goes over a part of the outer one's item",
        ),
        (
            "{% for a in payload.x recursive %}{% endfor %}",
            "a recursive loop is nothing a template may use",
        ),
    ],
)
def test_loops_that_could_run_long(source: str, problem: str) -> None:
    assert failure_of(source, {"x": [1]}).what == problem


def test_loops() -> None:
    payload = {"orders": [{"id": "a", "lines": ["x", "y"]}, {"id": "b", "lines": []}]}
    source = (
        "{% for order in payload.orders %}{{ loop.index }}{{ order.id }}"
        "{% for line in order.lines %} {{ line }}{% else %} none{% endfor %}{{ '' if loop.last else ', ' }}{% endfor %}"
    )
    assert text_of(source, payload) == "1a x y, 2b none"
    assert (
        text_of("{% for a, b in payload.pairs if a %}{{ b }}{% endfor %}", {"pairs": [[0, 1], [2, 3]]}) == "3"
    )
    assert failure_of("{% for a in payload.x %}{% endfor %}{{ a }}", {"x": []}).what == "there is no a"


def test_lines_of_blocks_leave_no_empty_lines() -> None:
    assert text_of("a\n  {% if link %}\nb\n  {% endif %}\nc\n") == "a\nb\nc"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is nothing (null); say what stands in its place, such as {{ name or 'there' }}"),
        (True, "a bool is no text; choose from it, or use a filter: date, datetime, money"),
        ([1], "a list is no text; choose from it, or use a filter: date, datetime, money"),
        ({"a": 1}, "a dict is no text; choose from it, or use a filter: date, datetime, money"),
        (b"x", "a bytes is no text; choose from it, or use a filter: date, datetime, money"),
    ],
)
def test_what_nobody_can_read_is_not_printed(value: object, problem: str) -> None:
    failure = failure_of("a\nb {{ payload.x }}", {"x": value})
    assert str(failure) == f"{FILE}:2: {problem}"


def test_a_missing_name_is_told_with_its_line() -> None:
    failure = failure_of("a\n\n{{ recipient.first_nam }}")
    assert str(failure) == f"{FILE}:3: there is no first_nam here; did you mean first_name?"
    assert (failure.file, failure.line, failure.missing) == (FILE, 3, "first_nam")


@pytest.mark.parametrize(
    "source",
    ["{{ payload.a.b }}", "{% if payload.a %}{% endif %}", "{{ payload.a == 1 }}", "{{ 1 + payload.a }}"],
)
def test_a_missing_name_is_not_false(source: str) -> None:
    assert failure_of(source).missing == "a"


def test_a_name_may_be_asked_for() -> None:
    assert text_of("{{ payload.a if payload.a is defined else 'none' }}") == "none"


@pytest.mark.parametrize(
    "source",
    [
        "{{ payload[payload.secret] }}",
        "{{ payload.secret | date }}",
        "{{ payload.secret + 1 }}",
        "{{ 'x' in payload.number }}",
    ],
)
def test_no_failure_tells_a_value(source: str) -> None:
    failure = failure_of(source, {"secret": "hunter2", "number": 5})
    assert "hunter2" not in f"{failure} {failure.missing}"


@pytest.mark.parametrize("limit", [999, 1000])
def test_a_text_is_never_longer_than_its_limit(limit: int) -> None:
    source, payload = "{% for a in payload.x %}{{ a }}{% endfor %}", {"x": ["ab"] * 500}
    if limit < 1000:
        assert failure_of(source, payload, limit=limit).what == "is longer than 999 characters"
    else:
        assert text_of(source, payload, limit=limit) == "ab" * 500


def test_a_source_is_never_longer_than_its_limit() -> None:
    assert text_of("x" * SOURCE_LIMIT, limit=SOURCE_LIMIT) == "x" * SOURCE_LIMIT
    assert failure_of("x" * (SOURCE_LIMIT + 1)).what == f"is longer than {SOURCE_LIMIT} characters"


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "9" * 5000 + " }}",
        "{% if link %}" * 200 + "{% endif %}" * 200,
    ],
)
def test_what_would_break_the_compiler_is_a_failure(source: str) -> None:
    assert failure_of(source).file == FILE


_WORDS = st.sampled_from(
    [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "payload",
        "link",
        ".x",
        "|",
        "money",
        "('EUR')",
        "date",
        "(",
        ")",
        "[",
        "]",
        "for",
        "a",
        "in",
        "endfor",
        "if",
        "else",
        "endif",
        "is",
        "not",
        "defined",
        "*",
        "+",
        "~",
        "-",
        "1",
        "'t'",
        ",",
        "==",
        "\n",
        "raw",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_WORDS, max_size=24))
def test_any_source_renders_within_its_limit_or_fails_as_a_template_does(words: list[str]) -> None:
    try:
        text = text_of(" ".join(words), {"x": [1, "b", None]}, limit=200)
    except TemplateFailure as failure:
        assert failure.file == FILE  # noqa: PT017 every failure says where
    else:
        assert len(text) <= 200


def test_jinjas_own_names_are_not_there_even_where_any_name_may_be() -> None:
    with pytest.raises(TemplateFailure, match="there is no range"):
        Compiled("{{ range }}", FILE, names=None).render({}, 10)


def test_names_are_not_checked_where_they_are_not_known() -> None:
    assert Compiled("{{ items }}", FILE, names=None).render({"items": 3}, 10) == "3"
    with pytest.raises(TemplateFailure):
        Compiled("{{ items }}", FILE, names=NAMES)
