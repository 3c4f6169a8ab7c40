"""What the shipped templates say: in every language, on every channel, and of nothing that the kind's event lacks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.registry import check_product, load_catalogue
from schemas.products.audience import Channel
from schemas.templates.context import Context, Person, Tenant
from schemas.templates.renderer import Renderer
from tests.contract.schemas.moments import AT

CATALOGUE = load_catalogue()
LOANS = CATALOGUE.product("loans")
RENDERER = Renderer(CATALOGUE)
LOCALES = ("en", "de")
PARTS = {Channel.EMAIL: ("subject", "txt", "html")}
PRODUCTS = Path(__file__).parents[3]
EXPRESSION = re.compile(r"\{\{(.*?)\}\}")


def context(kind: str) -> Context:
    """All that a message of the kind may speak of, from its event's sample."""
    (event,) = LOANS.product.fired_by(kind)
    ada, grace = Person("a-1", "Ada", "applicant"), Person("b-1", "Grace", "advisor")
    return Context(
        recipient=ada,
        tenant=Tenant("acme", "Acme & Sons"),
        subject_id="lead-1",
        payload=LOANS.events[event].accept(LOANS.samples[event]),
        link="https://acme.example/l/1",
        occurred_at=AT,
        applicant=ada,
        advisor=grace,
        zone="Europe/Berlin",
    )


@pytest.mark.parametrize("folder", ["schemas/products/loans", "tests/products/worklog"])
def test_the_lint_finds_nothing(folder: str) -> None:
    assert check_product(PRODUCTS / folder) == []


@pytest.mark.parametrize("kind", sorted(LOANS.product.kinds))
def test_each_channel_has_every_part_in_every_language_and_nothing_else(kind: str) -> None:
    folder = kind.partition(".")[2]
    expected = {
        f"{folder}/{channel}.{locale}.{part}.j2"
        for channel in LOANS.product.kinds[kind].channels
        for locale in LOCALES
        for part in PARTS.get(channel, ("txt",))
    }
    assert {path for path in LOANS.templates if path.startswith(f"{folder}/")} == expected


@pytest.mark.parametrize("kind", sorted(LOANS.product.kinds))
@pytest.mark.parametrize("locale", LOCALES)
def test_a_subject_is_short_even_when_nobody_is_known(kind: str, locale: str) -> None:
    if Channel.EMAIL not in LOANS.product.kinds[kind].channels:
        return
    for known in (context(kind), replace(context(kind), applicant=Person(), recipient=Person())):
        email = dict(RENDERER.render("loans", kind, Channel.EMAIL, locale, known))
        assert 5 < len(str(email["subject"])) <= 78


@pytest.mark.parametrize("path", sorted(path for path in LOANS.templates if path.endswith(".html.j2")))
def test_html_says_its_language_and_has_its_text_beside_it(path: str) -> None:
    locale = path.split(".")[1]
    assert f'<html lang="{locale}">' in LOANS.templates[path]
    words = re.sub(r"<[^>]+>", " ", LOANS.templates[path])
    beside = LOANS.templates[path.replace(".html.", ".txt.")]
    names = {found.strip() for found in EXPRESSION.findall(words)}
    assert names | {"link"} == {found.strip() for found in EXPRESSION.findall(beside)}


@pytest.mark.parametrize(
    ("kind", "channel", "locale", "text"),
    [
        ("offer_received", Channel.INAPP, "en", "Ada chose offer offer-17 of €12,500.00."),
        (
            "offer_received",
            Channel.INAPP,
            "de-DE",
            "Ada hat das Angebot offer-17 über 12.500,00\xa0€ gewählt.",
        ),
        (
            "offer_received",
            Channel.INAPP,
            "de-AT",
            "Ada hat das Angebot offer-17 über €\xa012.500,00 gewählt.",
        ),
        (
            "choose_offer",
            Channel.WHATSAPP,
            "pt-BR",
            "Hello Ada, you have looked at 4 offers and not chosen one yet. All that is on offer is here: "
            "https://acme.example/l/1",
        ),
        (
            "disbursed",
            Channel.EMAIL,
            "de",
            "Guten Tag Ada,\n\nIhr Kredit wurde am 30. März 2026 ausgezahlt. Wann er auf Ihrem Konto ist, hängt von "
            "Ihrer Bank ab.\n\nZum Antrag: https://acme.example/l/1\n\nAcme & Sons",
        ),
    ],
)
def test_amounts_and_dates_are_written_as_the_reader_writes_them(
    kind: str, channel: Channel, locale: str, text: str
) -> None:
    rendered = RENDERER.render("loans", f"loans.{kind}", channel, locale, context(f"loans.{kind}"))
    assert dict(rendered)["text"] == text


@pytest.mark.parametrize(
    ("locale", "said"), [("en", "looked at one offer and"), ("de", "haben ein Angebot angesehen")]
)
def test_one_offer_is_not_several(locale: str, said: str) -> None:
    one = replace(context("loans.choose_offer"), payload={"applicant_id": "a-1", "offers": 1})
    rendered = RENDERER.render("loans", "loans.choose_offer", Channel.WHATSAPP, locale, one)
    assert said in str(dict(rendered)["text"])
