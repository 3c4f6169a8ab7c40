"""A product's templates: `templates/<kind>/<channel>.<locale>.<part>.j2`, a digest's in `digest/` below its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.names import did_you_mean
from schemas.products.model import Product
from schemas.products.problems import Problem

TEMPLATES = "templates/"
_PLACE = re.compile(
    r"(?P<kind>[a-z][a-z0-9_]*)/(?P<digest>digest/)?(?P<channel>[a-z]+)\.(?P<locale>[A-Za-z-]+)\."
    r"(?P<part>txt|html|json|subject)\.j2"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a template's path says: the message that it is a part of."""

    kind: str
    """Without the product in front."""
    digest: bool
    channel: str
    locale: str

    @property
    def prefix(self) -> str:
        """How the paths of all its parts begin."""
        return f"{self.kind}/{'digest/' if self.digest else ''}{self.channel}.{self.locale}."


def place_of(path: str) -> tuple[Place, str] | None:
    """A path below `templates/` as (message, part); None for a path that is no template's."""
    found = _PLACE.fullmatch(path)
    if found is None:
        return None
    return Place(found["kind"], bool(found["digest"]), found["channel"], found["locale"]), found["part"]


def read_templates(files: Mapping[str, bytes], problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """(path below `templates/`, source) of each template; what is no text goes to `problems`."""
    for path, body in files.items():
        if path.startswith(TEMPLATES):
            try:
                yield path.removeprefix(TEMPLATES), body.decode()
            except UnicodeDecodeError as error:
                problems.append(Problem(path, 0, f"is not UTF-8: {error}"))


def misplaced_templates(templates: Mapping[str, str], product: Product) -> Iterator[Problem]:
    """Templates that are needed and not there, and those that are there and nobody would ever read."""
    yield from _missing(templates, product)
    channels = {name.partition(".")[2]: kind.channels for name, kind in product.kinds.items()}
    for path in templates:
        found = place_of(path)
        if found is None:
            message = "is no template's place; that is <kind>/<channel>.<locale>.<txt|html|json|subject>.j2"
        elif (place := found[0]).kind not in channels:
            message = f"belongs to no kind of this product{did_you_mean(place.kind, product.kinds)}"
        elif place.channel not in channels[place.kind]:
            message = f"nobody is told of {place.kind} on {place.channel}"
        else:
            continue
        yield Problem(f"{TEMPLATES}{path}", 0, message)


def _missing(templates: Mapping[str, str], product: Product) -> Iterator[Problem]:
    """Each kind and channel needs its template in the default locale, which the others fall back to."""
    for name, kind in product.kinds.items():
        for channel in sorted(kind.channels):
            prefix = f"{name.partition('.')[2]}/{channel}.{product.default_locale}."
            if not any(path.startswith(prefix) for path in templates):
                message = f"is missing: {name} is told on {channel}"
                yield Problem(f"{TEMPLATES}{prefix}txt.j2", 0, message)
