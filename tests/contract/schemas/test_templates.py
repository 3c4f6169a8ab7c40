"""What the shipped templates say: in every language, on every channel, and of nothing that the kind's event lacks."""

from __future__ import annotations

import re

import pytest

from connectors.registry import load_catalogue
from schemas.products.audience import Channel
from schemas.products.catalogue import LoadedProduct

LOANS = load_catalogue().product("loans")
LOCALES = ("en", "de")
PARTS = {Channel.EMAIL: ("subject", "txt", "html")}
EVERYWHERE = {
    "recipient.first_name",
    "applicant.first_name",
    "advisor.first_name",
    "tenant.name",
    "subject_id",
    "link",
}

EXPRESSION = re.compile(r"\{\{(.*?)\}\}")


def payload_names(loaded: LoadedProduct, kind: str) -> set[str]:
    """What a template of this kind may take from the payload: fields that every event firing it has."""
    firing = loaded.product.fired_by(kind)
    return {f"payload.{name}" for name in set.intersection(*(set(loaded.events[e].fields) for e in firing))}


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


@pytest.mark.parametrize("path", sorted(LOANS.templates))
def test_it_names_only_what_there_will_be(path: str) -> None:
    kind = f"loans.{path.partition('/')[0]}"
    named = {found.strip() for found in EXPRESSION.findall(LOANS.templates[path])}
    assert named <= EVERYWHERE | payload_names(LOANS, kind)
    assert "{%" not in LOANS.templates[path]


@pytest.mark.parametrize("path", sorted(path for path in LOANS.templates if ".subject." in path))
def test_a_subject_is_one_short_line(path: str) -> None:
    text = LOANS.templates[path]
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert len(text) <= 78


@pytest.mark.parametrize("path", sorted(path for path in LOANS.templates if path.endswith(".html.j2")))
def test_html_says_its_language_and_has_its_text_beside_it(path: str) -> None:
    locale = path.split(".")[1]
    assert f'<html lang="{locale}">' in LOANS.templates[path]
    words = re.sub(r"<[^>]+>", " ", LOANS.templates[path])
    beside = LOANS.templates[path.replace(".html.", ".txt.")]
    names = {found.strip() for found in EXPRESSION.findall(words)}
    assert names | {"link"} == {found.strip() for found in EXPRESSION.findall(beside)}
