"""A product's templates: `templates/<kind>/<channel>.<locale>.<part>.j2`, a digest's in `digest/` below its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from schemas.names import did_you_mean
from schemas.products.model import Product
from schemas.products.problems import Problem

TEMPLATES = "templates/"
_PLACE = re.compile(
    r"(?P<kind>[a-z][a-z0-9_]*)/(digest/)?(?P<channel>[a-z]+)\.[A-Za-z-]+\.(txt|html|json|subject)\.j2"
)


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
    if templates:  # a product without any has none to miss
        yield from _missing(templates, product)
    channels = {name.partition(".")[2]: kind.channels for name, kind in product.kinds.items()}
    for path in templates:
        place = _PLACE.fullmatch(path)
        if place is None:
            message = "is no template's place; that is <kind>/<channel>.<locale>.<txt|html|json|subject>.j2"
        elif place["kind"] not in channels:
            message = f"belongs to no kind of this product{did_you_mean(place['kind'], product.kinds)}"
        elif place["channel"] not in channels[place["kind"]]:
            message = f"nobody is told of {place['kind']} on {place['channel']}"
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
