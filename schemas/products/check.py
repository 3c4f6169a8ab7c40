"""A product folder, checked: everything that is wrong with it, each with file, line and reason.

Pure: takes the folder's files as bytes. Reading folders is `connectors.registry`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ValidationError

from schemas.codec import EventContract
from schemas.names import did_you_mean
from schemas.products.catalogue import LoadedProduct
from schemas.products.contracts import read_confluent_ids, read_contracts, read_samples
from schemas.products.history import read_history
from schemas.products.model import Product, Role
from schemas.products.problems import PRODUCT_FILE, Lines, Problem
from schemas.products.templates import misplaced_templates, read_templates

__all__ = ["PRODUCT_FILE", "Checked", "Problem", "check_folder"]


@dataclass(slots=True)
class Checked:
    """What a folder holds: a loaded product when nothing is wrong."""

    product: LoadedProduct | None
    problems: list[Problem] = field(default_factory=list)


def check_folder(files: Mapping[str, bytes]) -> Checked:
    """Check a product folder given as its files by relative path with forward slashes."""
    if PRODUCT_FILE not in files:
        return Checked(None, [Problem(PRODUCT_FILE, 0, "is missing; it says what the product is")])
    problems: list[Problem] = []
    lines, product = _read_product(files[PRODUCT_FILE], problems)
    history, history_problems = read_history(files)
    problems.extend(Problem(file, 0, message) for file, message in history_problems)
    confluent = read_confluent_ids(product.confluent_ids, history, lines, problems) if product else {}
    name = product.product if product else None
    contracts = dict(read_contracts(files, name, history, confluent, problems))
    samples = dict(read_samples(files, contracts, problems))
    templates = dict(read_templates(files, problems))
    if product is not None:
        problems.extend(_events(product, contracts, lines))
        problems.extend(_kinds(product, contracts, lines))
        problems.extend(misplaced_templates(templates, product))
    if problems or product is None:
        return Checked(None, sorted(set(problems)))
    return Checked(LoadedProduct(product, contracts, samples, templates))


def _read_product(body: bytes, problems: list[Problem]) -> tuple[Lines, Product | None]:
    try:
        text = body.decode()
        lines = Lines(yaml.compose(text, Loader=yaml.SafeLoader))
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or a date that is none
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        problems.append(Problem(PRODUCT_FILE, mark.line + 1 if mark else 0, f"is not YAML: {what}"))
        return Lines(None), None
    if not isinstance(value, dict):
        problems.append(Problem(PRODUCT_FILE, 1, "must be a mapping that begins with `product:`"))
        return lines, None
    problems += [
        Problem(PRODUCT_FILE, line, f"{key} is there already; only the last would count")
        for line, key in lines.duplicates()
    ]
    try:
        return lines, Product.model_validate(_yaml_on(value))
    except ValidationError as error:
        for found in error.errors():
            path = tuple(found["loc"])
            shown = ".".join(str(step) for step in path)
            message = found["msg"].removeprefix("Value error, ")
            if found["type"] == "extra_forbidden":
                message = "nobody reads this key; is it misspelt?"
            problems.append(
                Problem(PRODUCT_FILE, lines.of(path), f"{shown}: {message}" if shown else message)
            )
        return lines, None


def _yaml_on(value: Any) -> Any:
    """YAML 1.1 reads the key `on` as true; ours is a word."""
    if isinstance(value, dict):
        return {"on" if key is True else key: _yaml_on(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_yaml_on(item) for item in value]
    return value


def _places(product: Product) -> Iterator[tuple[str, Role, tuple[int | str, ...]]]:
    """Each event type that is named, the role it is named for, and where; in the file's order."""
    if product.journey is not None:
        for index, step in enumerate(product.journey.steps):
            yield step.on, Role.STEP, ("journey", "steps", index)
        yield from ((name, Role.END, ("journey", "ends_on")) for name in sorted(product.journey.ends_on))
        for name in sorted(product.journey.restarts_on):
            yield name, Role.RESTART, ("journey", "restarts_on")
    for name, kind in product.kinds.items():
        if kind.on is not None:
            yield kind.on, Role.LIFECYCLE, ("kinds", name)


def _events(product: Product, contracts: Mapping[str, EventContract], lines: Lines) -> Iterator[Problem]:
    counted = Counter(name for name, _ in product.claims())
    told: set[tuple[str, Role]] = set()
    for name, role, path in _places(product):
        line = lines.of(path)
        if name not in contracts:
            schema = f"events/{name.partition('.')[2]}.avsc"
            yield Problem(PRODUCT_FILE, line, f"{name} has no schema {schema}{did_you_mean(name, contracts)}")
        if (name, role) in told and role is Role.STEP:
            yield Problem(PRODUCT_FILE, line, f"{name} is a step already; a step has one rank")
        elif counted[name] > 1 and any(other == name for other, _ in told) and (name, role) not in told:
            roles = " and ".join(
                dict.fromkeys(claim.value for claimed, claim in product.claims() if claimed == name)
            )
            yield Problem(PRODUCT_FILE, line, f"{name} is {roles}; an event type has one role")
        told.add((name, role))


def _kinds(product: Product, contracts: Mapping[str, EventContract], lines: Lines) -> Iterator[Problem]:
    for index, step in enumerate(product.journey.steps if product.journey else ()):
        if step.nudge not in product.kinds:
            line = lines.of(("journey", "steps", index))
            message = f"nudge {step.nudge} is not among the kinds{did_you_mean(step.nudge, product.kinds)}"
            yield Problem(PRODUCT_FILE, line, message)
    for name, kind in product.kinds.items():
        line = lines.of(("kinds", name))
        if not name.startswith(f"{product.product}."):
            own = f"{product.product}.{name.partition('.')[2]}"
            yield Problem(PRODUCT_FILE, line, f"{name} is another product's name; this one's is {own}")
        needed = sorted({audience.payload_field for audience in kind.audiences if audience.payload_field})
        for event in product.fired_by(name):
            if event in contracts:
                for field in needed:
                    if field not in contracts[event].fields:
                        yield Problem(PRODUCT_FILE, line, f"{name}: {event} has no payload field {field}")
