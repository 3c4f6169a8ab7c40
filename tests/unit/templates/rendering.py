"""One template text rendered, and one product with templates, for the tests of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from schemas.products.audience import Channel
from schemas.products.catalogue import Catalogue, LoadedProduct
from schemas.products.model import Product
from schemas.templates.context import NAMES, Context, Person, Tenant
from schemas.templates.locales import conventions
from schemas.templates.renderer import Renderer
from schemas.templates.sandbox import Compiled

AT = datetime(2026, 3, 29, 22, 4, tzinfo=UTC)
FILE = "collect/inapp.en.txt.j2"


def context(payload: Mapping[str, object] | None = None, **more: Any) -> Context:
    """A context in which everything is known but the due time."""
    known: dict[str, Any] = {
        "recipient": Person("u-1", "Ada", "applicant"),
        "tenant": Tenant("acme", "Acme & Sons"),
        "subject_id": "card-1",
        "payload": payload or {},
        "link": "https://acme.example/?a=1&b=2",
        "occurred_at": AT,
    }
    return Context(**(known | more))


def text_of(
    source: str,
    payload: Mapping[str, object] | None = None,
    *,
    locale: str = "en",
    escape: bool = False,
    limit: int = 1000,
    **more: Any,
) -> str:
    """What a template text says."""
    names = context(payload, **more).names(locale, conventions(locale, locale))
    return Compiled(source, FILE, names=NAMES, escape=escape).render(names, limit)


def renderer(templates: Mapping[str, str], *, channel: Channel, default_locale: str = "en") -> Renderer:
    """A renderer of the product `cards`, whose kind `cards.collect` has these templates."""
    product = Product.model_validate(
        {
            "product": "cards",
            "subject": "card",
            "default_locale": default_locale,
            "kinds": {"cards.collect": {"audiences": [{"who": "applicant", "channels": [channel]}]}},
        }
    )
    sources = {f"collect/{channel}.{file}.j2": source for file, source in templates.items()}
    return Renderer(Catalogue([LoadedProduct(product, {}, templates=sources)]))


def message(
    templates: Mapping[str, str], *, channel: Channel, locale: str = "en", **more: Any
) -> dict[str, Any]:
    """The message of these templates, by file without `collect/<channel>.` and `.j2`."""
    made = renderer(templates, channel=channel)
    return dict(made.render("cards", "cards.collect", channel, locale, context(**more)))
