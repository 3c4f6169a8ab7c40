"""The event types of a product folder: `events/*.avsc` compiled to contracts, `samples/*.json` held against them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from schemas import avro
from schemas.bounds import unbounded
from schemas.codec import BodyError, EventContract
from schemas.json_form import Mismatch, compile_check
from schemas.products.history import FOLDER, History
from schemas.products.problems import PRODUCT_FILE, Lines, Problem, line_of

EVENTS, SAMPLES = "events/", "samples/"


def read_contracts(
    files: Mapping[str, bytes],
    product_name: str | None,
    history: History,
    confluent: Mapping[int, Any],
    problems: list[Problem],
) -> Iterator[tuple[str, EventContract]]:
    """(event type, contract) of each schema that is one; what is wrong goes to `problems`."""
    for path in sorted(files):
        if not (path.startswith(EVENTS) and path.endswith(".avsc")):
            continue
        try:
            raw = json.loads(files[path])
            if not isinstance(raw, dict) or raw.get("type") != "record":
                problems.append(Problem(path, 1, "must be a record: an event's payload has named fields"))
                continue
            reader = avro.parse(raw)
        except Exception as error:  # noqa: BLE001 json and fastavro raise whatever the text made them stumble over
            problems.append(Problem(path, getattr(error, "lineno", 0), f"is not an Avro schema: {error}"))
            continue
        stem = path.removeprefix(EVENTS).removesuffix(".avsc")
        event_type = f"{raw.get('namespace', '')}.{raw['name']}"
        if product_name is not None and event_type != f"{product_name}.{stem}":
            problems.append(
                Problem(path, 1, f"declares {event_type}; by its place it must be {product_name}.{stem}")
            )
        problems += _fields(path, files[path], reader)
        versions = history.versions(event_type)
        problems += _bounds(path, files[path], reader)
        for number, version in enumerate(versions, start=1):
            recorded = f"{FOLDER}{stem}/{number}.avsc"
            problems += _bounds(recorded, files.get(recorded, b""), version)
        writers = {avro.fingerprint_of(schema): schema for schema in (*versions, reader)}
        by_id = {number: schema for number, schema in confluent.items() if schema in versions}
        yield event_type, EventContract(event_type, raw, avro.Writers(reader, writers, by_id))


def _fields(path: str, body: bytes, reader: Mapping[str, Any]) -> Iterator[Problem]:
    for item in reader["fields"]:
        name, line = item["name"], line_of(body, f'"{item["name"]}"')
        if not item.get("doc"):
            yield Problem(path, line, f"field {name} has no doc; say what it means")
        if "default" in item and not _is_plain(item["type"], item["default"]):
            yield Problem(
                path,
                line,
                f"field {name}: default {item['default']!r} would read differently in Avro and in JSON; "
                "make it nullable with default null",
            )


def _bounds(path: str, body: bytes, schema: Any) -> Iterator[Problem]:
    for message in unbounded(schema):
        outermost = re.split(r"[.\[{:]", message, maxsplit=1)[0]
        yield Problem(path, line_of(body, f'"{outermost}"'), message)


def _is_plain(schema: Any, default: object) -> bool:
    """Whether a default is the same as Avro's reader takes it, uninterpreted, and as a JSON value."""
    try:
        return compile_check(schema)(default) == default
    except Mismatch:
        return False


def read_confluent_ids(
    ids: Mapping[int, str], history: History, lines: Lines, problems: list[Problem]
) -> dict[int, Any]:
    """The recorded schema that each registry id names."""
    found = {}
    for number, version in ids.items():
        event_type, _, ordinal = version.partition("@")
        versions = history.versions(event_type)
        if int(ordinal) > len(versions):
            line = lines.of(("confluent_ids", str(number)))
            problems.append(
                Problem(PRODUCT_FILE, line, f"confluent_ids: {number} names {version}, which is not recorded")
            )
        else:
            found[number] = versions[int(ordinal) - 1]
    return found


def read_samples(
    files: Mapping[str, bytes], contracts: Mapping[str, EventContract], problems: list[Problem]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """(event type, payload) of each sample that its contract accepts."""
    by_path = {f"{SAMPLES}{name.partition('.')[2]}.json": contract for name, contract in contracts.items()}
    for path, contract in by_path.items():
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
        except UnicodeDecodeError as error:
            problems.append(Problem(path, 0, f"is not UTF-8: {error}"))
        except BodyError as error:
            problems.append(Problem(path, 1, str(error)))
        else:
            unread = sorted(set(value) - set(contract.fields))
            problems += [
                Problem(
                    path, line_of(files[path], f'"{name}"'), f"{name} is no field of {contract.event_type}"
                )
                for name in unread
            ]
            yield contract.event_type, value
    problems += [
        Problem(path, 0, "belongs to no event type of this product")
        for path in files
        if path.startswith(SAMPLES) and path not in by_path
    ]
