"""All messages of a product, compiled once from its templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from babel import Locale, UnknownLocaleError

from schemas.products.audience import Channel
from schemas.products.catalogue import LoadedProduct
from schemas.products.templates import Place, place_of
from schemas.templates.failure import TemplateFailure
from schemas.templates.locales import conventions, fallbacks
from schemas.templates.message import Message
from schemas.templates.sandbox import Compiled


@dataclass(frozen=True, slots=True)
class Found:
    """The message for a person's locale, the language it is in, and how that person writes numbers in it."""

    message: Message
    locale: str
    conventions: Locale


class Messages:
    """A product's messages by kind, channel and locale. Immutable; safe to share between threads."""

    def __init__(self, loaded: LoadedProduct) -> None:
        """Compiles everything; what does not compile is in `failures`."""
        self.failures: list[TemplateFailure] = []
        self._default = loaded.product.default_locale
        self._by_place: dict[tuple[str, Channel], dict[str, Message]] = {}
        for place, parts in _grouped(loaded.templates).items():
            self._compile(loaded.name, place, parts)
        # Locales are what people's devices send: bounded, unlike a dictionary filled on demand.
        self.find = lru_cache(maxsize=4096)(self._find)

    def _compile(self, product: str, place: Place, parts: Mapping[str, str]) -> None:
        prefix = place.prefix
        try:
            Locale.parse(place.locale, sep="-")
            if place.digest:  # what a digest may name is its collector's; here it must compile
                for part, source in parts.items():
                    Compiled(source, f"{prefix}{part}.j2", names=None, escape=part == "html")
                return
            message = Message(prefix, Channel(place.channel), place.locale, parts)
        except (UnknownLocaleError, ValueError):
            file = f"{prefix}{min(parts)}.j2"
            self.failures.append(TemplateFailure(f"no such language: {place.locale}", file))
        except TemplateFailure as failure:
            self.failures.append(failure)
        else:
            kind = f"{product}.{place.kind}"
            self._by_place.setdefault((kind, Channel(place.channel)), {})[place.locale] = message

    def _find(self, kind: str, channel: Channel, requested: str) -> Found:
        """The best there is for a locale: `pt-BR`, `pt`, the product's default. Raises `TemplateFailure`."""
        there = self._by_place.get((kind, channel), {})
        for locale in fallbacks(requested, self._default):
            if locale in there:
                return Found(there[locale], locale, conventions(requested, locale))
        file = f"{kind.partition('.')[2]}/{channel}.{self._default}.txt.j2"
        raise TemplateFailure(f"is missing: nothing is written for {kind} on {channel}", file)

    def __iter__(self) -> Iterator[tuple[str, Channel, str]]:
        """Each (kind, channel, locale) that has a message of its own."""
        for (kind, channel), there in self._by_place.items():
            yield from ((kind, channel, locale) for locale in there)


def _grouped(templates: Mapping[str, str]) -> dict[Place, dict[str, str]]:
    grouped: dict[Place, dict[str, str]] = {}
    for path, source in sorted(templates.items()):
        found = place_of(path)
        if found is not None:
            place, part = found
            grouped.setdefault(place, {})[part] = source
    return grouped
