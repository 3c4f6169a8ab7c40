"""A product folder, checked: everything that is wrong with it, each with file, line and reason.

Pure: takes the folder's files as bytes. Reading folders is `connectors.registry`'s.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml
from pydantic import ValidationError

from schemas import avro
from schemas.codec import BodyError, EventContract
from schemas.products.catalogue import LoadedProduct
from schemas.products.history import History, read_history
from schemas.products.model import Product

PRODUCT_FILE = "product.yaml"
_EVENTS, _SAMPLES, _TEMPLATES = "events/", "samples/", "templates/"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong: where, and what would be right. `line` counts from 1; 0 is the whole file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


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
    name = product.product if product is not None else None
    contracts = dict(_contracts(files, name, history, product, problems))
    samples = dict(_samples(files, contracts, problems))
    if product is not None:
        problems.extend(_cross_check(product, contracts, lines))
        problems.extend(_templates(files, product))
    if problems or product is None:
        return Checked(None, sorted(problems))
    templates = {
        path.removeprefix(_TEMPLATES): body.decode()
        for path, body in files.items()
        if path.startswith(_TEMPLATES)
    }
    return Checked(LoadedProduct(product, contracts, samples, templates))


class _Lines:
    """Which line of the YAML a path is on; the nearest that exists for one that does not."""

    def __init__(self, node: yaml.Node | None) -> None:
        self._root = node

    def of(self, path: tuple[int | str, ...]) -> int:
        node, line = self._root, 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            line, node = found
        return line


def _child(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        value = node.value[step]
        return value.start_mark.line + 1, value
    return None


def _read_product(body: bytes, problems: list[Problem]) -> tuple[_Lines, Product | None]:
    try:
        text = body.decode()
        lines = _Lines(yaml.compose(text, Loader=yaml.SafeLoader))
        value = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        problems.append(Problem(PRODUCT_FILE, mark.line + 1 if mark else 0, f"is not YAML: {what}"))
        return _Lines(None), None
    if not isinstance(value, dict):
        problems.append(Problem(PRODUCT_FILE, 1, "must be a mapping that begins with `product:`"))
        return lines, None
    value = _yaml_on(value)
    try:
        return lines, Product.model_validate(value)
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


def _contracts(
    files: Mapping[str, bytes],
    product_name: str | None,
    history: History,
    product: Product | None,
    problems: list[Problem],
) -> Iterator[tuple[str, EventContract]]:
    ids = dict(product.confluent_ids) if product is not None else {}
    for path in sorted(files):
        if not (path.startswith(_EVENTS) and path.endswith(".avsc")):
            continue
        try:
            raw = json.loads(files[path])
            reader = avro.parse(raw)
        except Exception as error:  # noqa: BLE001 json and fastavro raise whatever the text made them stumble over
            problems.append(Problem(path, getattr(error, "lineno", 0), f"is not an Avro schema: {error}"))
            continue
        if raw.get("type") != "record":
            problems.append(Problem(path, 1, "must be a record: an event's payload has named fields"))
            continue
        event_type = f"{raw.get('namespace', '')}.{raw['name']}"
        stem = path.removeprefix(_EVENTS).removesuffix(".avsc")
        if product_name is not None and event_type != f"{product_name}.{stem}":
            problems.append(
                Problem(path, 1, f"declares {event_type}; by its place it must be {product_name}.{stem}")
            )
        for item in raw["fields"]:
            if not item.get("doc"):
                line = _line_of(files[path], f'"{item["name"]}"')
                problems.append(Problem(path, line, f"field {item['name']} has no doc; say what it means"))
        versions = history.versions(event_type)
        writers = {avro.fingerprint_of(schema): schema for schema in (*versions, reader)}
        by_id = {}
        for number, version in ids.items():
            named, _, ordinal = version.partition("@")
            if named == event_type:
                if int(ordinal) > len(versions):
                    problems.append(
                        Problem(
                            PRODUCT_FILE, 0, f"confluent_ids: {number} names {version}, which is not recorded"
                        )
                    )
                else:
                    by_id[number] = versions[int(ordinal) - 1]
        yield event_type, EventContract(event_type, raw, avro.Writers(reader, writers, by_id))


def _line_of(body: bytes, text: str) -> int:
    for number, line in enumerate(body.decode("utf-8", "replace").splitlines(), start=1):
        if text in line:
            return number
    return 0


def _samples(
    files: Mapping[str, bytes], contracts: Mapping[str, EventContract], problems: list[Problem]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    by_stem = {name.partition(".")[2]: contract for name, contract in contracts.items()}
    for stem, contract in by_stem.items():
        path = f"{_SAMPLES}{stem}.json"
        if path not in files:
            problems.append(
                Problem(path, 0, f"is missing; every event type has a sample payload ({contract.event_type})")
            )
            continue
        try:
            value = json.loads(files[path])
            contract.accept(value)
        except json.JSONDecodeError as error:
            problems.append(Problem(path, error.lineno, f"is not JSON: {error.msg}"))
        except BodyError as error:
            problems.append(Problem(path, 1, str(error)))
        else:
            yield contract.event_type, value
    problems.extend(
        Problem(path, 0, "belongs to no event type of this product")
        for path in files
        if path.startswith(_SAMPLES) and path.removeprefix(_SAMPLES).removesuffix(".json") not in by_stem
    )


def _cross_check(
    product: Product, contracts: Mapping[str, EventContract], lines: _Lines
) -> Iterator[Problem]:
    def near(name: str, known: Any) -> str:
        match = get_close_matches(name, list(known), n=1)
        return f"; did you mean {match[0]}?" if match else ""

    counted = Counter(name for name, _ in product.claims())
    for name, count in counted.items():
        if count > 1:
            roles = ", ".join(sorted(role.value for claimed, role in product.claims() if claimed == name))
            yield Problem(
                PRODUCT_FILE, lines.of(("journey",)), f"{name} has {count} roles ({roles}); it may have one"
            )
        if name not in contracts:
            path: tuple[int | str, ...] = ("journey",)
            for index, step in enumerate(product.journey.steps if product.journey else ()):
                if step.on == name:
                    path = ("journey", "steps", index)
            for kind_name, kind in product.kinds.items():
                if kind.on == name:
                    path = ("kinds", kind_name)
            stem = name.partition(".")[2]
            yield Problem(
                PRODUCT_FILE,
                lines.of(path),
                f"{name} has no schema events/{stem}.avsc{near(name, contracts)}",
            )
    for index, step in enumerate(product.journey.steps if product.journey else ()):
        if step.nudge not in product.kinds:
            yield Problem(
                PRODUCT_FILE,
                lines.of(("journey", "steps", index)),
                f"nudge {step.nudge} is not among the kinds{near(step.nudge, product.kinds)}",
            )
    for name, kind in product.kinds.items():
        for audience in kind.audiences:
            needed = audience.payload_field
            contract = contracts.get(kind.on or "")
            if needed is not None and contract is not None and needed not in contract.fields:
                yield Problem(
                    PRODUCT_FILE,
                    lines.of(("kinds", name)),
                    f"{name}: {kind.on} has no payload field {needed}",
                )


def _templates(files: Mapping[str, bytes], product: Product) -> Iterator[Problem]:
    """Each kind and channel needs its template in the default locale; a product without any has none to lint."""
    present = [path for path in files if path.startswith(_TEMPLATES)]
    if not present:
        return
    for name, kind in product.kinds.items():
        folder = f"{_TEMPLATES}{name.partition('.')[2]}/"
        for channel in sorted(kind.channels):
            prefix = f"{folder}{channel}.{product.default_locale}."
            if not any(path.startswith(prefix) for path in present):
                yield Problem(f"{prefix}txt.j2", 0, f"is missing: {name} is told on {channel}")
