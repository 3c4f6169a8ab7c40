"""Rendering, as a delivery's first claim does it."""

from __future__ import annotations

from schemas.products.audience import Channel
from schemas.products.catalogue import Catalogue
from schemas.templates.context import Context
from schemas.templates.failure import InvalidTemplates
from schemas.templates.messages import Messages
from schemas.templates.rendered import Rendered


class Renderer:
    """Every product's templates, compiled when it is made. Immutable; safe to share between threads."""

    __slots__ = ("_products",)

    def __init__(self, catalogue: Catalogue) -> None:
        """Raises `InvalidTemplates` naming every template that does not compile."""
        self._products = {name: Messages(loaded) for name, loaded in catalogue.products.items()}
        failures = [failure for messages in self._products.values() for failure in messages.failures]
        if failures:
            raise InvalidTemplates(failures)

    def render(self, product: str, kind: str, channel: Channel, locale: str, context: Context) -> Rendered:
        """The message in the best language there is for `locale`: `pt-BR`, `pt`, the product's default.

        Deterministic. Raises `TemplateFailure` for a missing variable, a null where text belongs, a text over the
        channel's limit, or a kind without a template; `KeyError` for a product that the catalogue lacks.
        """
        found = self._products[product].find(kind, channel, locale)
        return found.message.render(context.names(found.locale, found.conventions))
