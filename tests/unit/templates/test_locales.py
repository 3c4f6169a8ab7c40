"""Which language a person gets, and whose conventions."""

from __future__ import annotations

import pytest

from schemas.products.audience import Channel
from schemas.templates.failure import TemplateFailure
from schemas.templates.locales import canonical, conventions, fallbacks
from tests.unit.templates.rendering import context, message, renderer


@pytest.mark.parametrize(
    ("requested", "tried"),
    [
        ("pt-BR", ("pt-BR", "pt", "en")),
        ("pt_br", ("pt-BR", "pt", "en")),
        ("ZH-hant-TW", ("zh-Hant-TW", "zh-Hant", "zh", "en")),
        ("de-CH-1996", ("de-CH", "de", "en")),
        ("es-419", ("es-419", "es", "en")),
        ("en", ("en",)),
        ("", ("en",)),
        ("../../etc", ("en",)),
    ],
)
def test_fallbacks(requested: str, tried: tuple[str, ...]) -> None:
    assert fallbacks(requested, "en") == tried


def test_what_is_no_language_tag() -> None:
    assert canonical("deutsch") is None


@pytest.mark.parametrize(
    ("requested", "text"),
    [
        ("pt-BR", "pt-BR"),
        ("pt-PT", "pt"),
        ("de", "de"),
        ("fr-CA", "de"),  # the product's default
        ("nonsense", "de"),
    ],
)
def test_the_best_language_there_is(requested: str, text: str) -> None:
    made = renderer(
        {"pt-BR.txt": "pt-BR", "pt.txt": "pt", "de.txt": "de"}, channel=Channel.INAPP, default_locale="de"
    )
    assert made.render("cards", "cards.collect", Channel.INAPP, requested, context()) == {"text": text}


def test_all_parts_of_a_message_are_in_one_language() -> None:
    templates = {
        "en.subject": "{{ locale }}",
        "en.txt": "en",
        "de.subject": "{{ locale }}",
        "de.txt": "de",
        "de.html": "<p>de</p>",
    }
    assert message(templates, channel=Channel.EMAIL, locale="fr") == {"subject": "en", "text": "en"}
    german = {"subject": "de", "text": "de", "html": "<p>de</p>"}
    assert message(templates, channel=Channel.EMAIL, locale="de-AT") == german


@pytest.mark.parametrize(
    ("requested", "written_in", "used"),
    [
        ("de-AT", "de", "de_AT"),
        ("de-AT", "en", "en"),  # an English text has English dates, whoever reads it
        ("fil-PH", "fi", "fi"),  # another language, though it begins alike
        ("de-QQ", "de", "de"),
        ("nonsense", "en-GB", "en_GB"),
    ],
)
def test_whose_conventions(requested: str, written_in: str, used: str) -> None:
    assert str(conventions(requested, written_in)) == used


def test_a_kind_without_any_template_says_where_it_belongs() -> None:
    made = renderer({"en.txt": "x"}, channel=Channel.INAPP)
    with pytest.raises(TemplateFailure) as failure:
        made.render("cards", "cards.collect", Channel.SMS, "pt-BR", context())
    assert str(failure.value) == (
        "collect/sms.en.txt.j2: is missing: nothing is written for cards.collect on sms"
    )
