"""Amounts, numbers, days and instants are written as the reader writes them; anything else is refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from schemas.templates.failure import TemplateFailure
from tests.unit.templates.rendering import text_of


@pytest.mark.parametrize(
    ("value", "source", "locale", "text"),
    [
        (1250000, "money('EUR')", "en", "€12,500.00"),
        (1250000, "money('EUR')", "de", "12.500,00\xa0€"),
        (1250000, "money('JPY')", "en", "¥1,250,000"),  # the yen has no minor unit
        (1250, "money('KWD')", "en", "KWD1.250"),  # the dinar has a thousand
        (-5, "money('USD')", "en", "-$0.05"),
        (Decimal("12.5"), "money('EUR')", "en", "€12.50"),
        (1234567, "number", "en", "1,234,567"),
        (1234567.25, "number", "de", "1.234.567,25"),
        (Decimal("0.125"), "number", "pt-BR", "0,125"),
    ],
)
def test_amounts_and_numbers(value: object, source: str, locale: str, text: str) -> None:
    assert text_of(f"{{{{ payload.x | {source} }}}}", {"x": value}, locale=locale) == text


@pytest.mark.parametrize(
    ("value", "source", "zone", "text"),
    [
        ("2026-03-29T22:04:05Z", "date", "UTC", "Mar 29, 2026"),
        ("2026-03-29T22:04:05Z", "date", "Europe/Berlin", "Mar 30, 2026"),  # already tomorrow there
        ("2026-03-29T22:04:05Z", "date('long')", "America/New_York", "March 29, 2026"),
        ("2026-03-29", "date", "Pacific/Auckland", "Mar 29, 2026"),  # a day is a day everywhere
        (date(2026, 3, 29), "date('short')", "UTC", "3/29/26"),
        (datetime(2026, 3, 29, 23, 30), "date", "Pacific/Auckland", "Mar 29, 2026"),  # noqa: DTZ001 wall time
        ("2026-03-29T00:59:00Z", "datetime('short')", "Europe/Berlin", "3/29/26, 1:59\u202fAM"),
        (
            "2026-03-29T01:00:00Z",
            "datetime('short')",
            "Europe/Berlin",
            "3/29/26, 3:00\u202fAM",
        ),  # summer time
        ("2026-03-29T09:00:00", "datetime('short')", "Europe/Berlin", "3/29/26, 9:00\u202fAM"),  # wall time
        (
            "2026-03-29T09:00:00Z",
            "datetime('short')",
            "Mars/Olympus",
            "3/29/26, 9:00\u202fAM",
        ),  # no such zone
        ("2026-03-29T09:00:00Z", "datetime('short')", "Europe", "3/29/26, 9:00\u202fAM"),  # a folder of zones
        ("2026-03-29T09:00:00Z", "datetime('short')", "../../etc/passwd", "3/29/26, 9:00\u202fAM"),
    ],
)
def test_days_and_instants(value: object, source: str, zone: str, text: str) -> None:
    assert text_of(f"{{{{ payload.x | {source} }}}}", {"x": value}, zone=zone) == text


def test_a_german_instant() -> None:
    text = text_of("{{ occurred_at | datetime }}", locale="de", zone="Europe/Berlin")
    assert text == "30.03.2026, 00:04:00"


@pytest.mark.parametrize(
    ("source", "value", "problem"),
    [
        ("money('EUR')", 12.5, "money: takes a whole number of minor units or a decimal, not a float"),
        ("money('EUR')", True, "money: takes a whole number of minor units or a decimal, not a bool"),
        ("money('EUR')", None, "money: takes a whole number of minor units or a decimal, not nothing (null)"),
        (
            "money('EUR')",
            Decimal("NaN"),
            "money: takes a whole number of minor units or a decimal, not a Decimal",
        ),
        ("money('euro')", 1, "money: no such currency; write its ISO 4217 code, such as money('EUR')"),
        ("number", "12", "number: takes a finite number, not a str"),
        ("number", float("inf"), "number: takes a finite number, not a float"),
        ("date", 1774821845, "date: takes an instant or a day, not a int"),
        ("date", "tomorrow", "date: takes an instant or a day in RFC 3339's form, not this text"),
        ("date('huge')", "2026-03-29", "date: the styles are short, medium, long, full"),
        ("datetime", "2026-03-29", "datetime: this is a day without a time; use date"),
        ("upper", 3, "upper: takes a text, not a int"),
        ("trim", None, "trim: takes a text, not nothing (null)"),
        ("truncate(0)", "abc", "truncate: takes a length from 1"),
        ("length", 3, "length: takes a list or a text, not a int"),
    ],
)
def test_what_a_filter_does_not_take(source: str, value: object, problem: str) -> None:
    with pytest.raises(TemplateFailure) as failure:
        text_of(f"\n{{{{ payload.x | {source} }}}}", {"x": value})
    assert (failure.value.what, failure.value.line) == (problem, 2)


def test_a_moment_that_is_no_moment_elsewhere_is_a_failure() -> None:
    with pytest.raises(TemplateFailure, match="OverflowError"):
        text_of("{{ payload.x | date }}", {"x": "9999-12-31T23:59:59Z"}, zone="Pacific/Auckland")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 'ada' | upper }}", "ADA"),
        ("{{ 'ADA' | lower | capitalize }}", "Ada"),
        ("{{ ' ada ' | trim }}", "ada"),
        ("{{ 'a long name' | truncate(7) }}", "a long…"),
        ("{{ 'a long name' | truncate(11) }}", "a long name"),
        ("{{ payload.list | length }}", "2"),
        ("{{ payload.nothing | default('none') }}", "none"),
    ],
)
def test_filters_on_text(source: str, text: str) -> None:
    assert text_of(source, {"list": [1, 2]}) == text


@pytest.mark.parametrize(
    "name", ["money('EUR')", "number", "date", "datetime", "upper", "truncate(3)", "length"]
)
def test_a_filter_on_a_missing_name_says_the_name(name: str) -> None:
    with pytest.raises(TemplateFailure) as failure:
        text_of(f"{{{{ payload.amuont | {name} }}}}", {"amount": 1})
    assert failure.value.missing == "amuont"
    assert failure.value.what == "there is no amuont here; did you mean amount?"
