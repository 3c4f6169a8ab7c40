"""Every version of an event's schema that was ever published: `history/<event>/<n>.avsc`, n from 1.

A body written with any of them must still be read, so a changed schema is held against all of them (backward,
transitive). Versions are added by `tellonce schemas record`, never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas import avro
from schemas.compat import incompatibilities

FOLDER = "history/"
_VERSION = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class History:
    """Recorded versions by event type, oldest first."""

    by_event: Mapping[str, tuple[Any, ...]]

    def versions(self, event_type: str) -> tuple[Any, ...]:
        """The versions of one event type, parsed; version n is at n - 1."""
        return self.by_event.get(event_type, ())


def read_history(files: Mapping[str, bytes]) -> tuple[History, list[tuple[str, str]]]:
    """The history among a product folder's files, and what is wrong with it as (file, message)."""
    found: dict[str, dict[int, Any]] = {}
    problems: list[tuple[str, str]] = []
    for path in sorted(path for path in files if path.startswith(FOLDER) and path.endswith(".avsc")):
        stem, _, number = path.removeprefix(FOLDER).removesuffix(".avsc").partition("/")
        try:
            raw = json.loads(files[path])
            schema = avro.parse(raw)
        except Exception as error:  # noqa: BLE001 json and fastavro raise whatever the text made them stumble over
            problems.append((path, f"is not a recorded version: {error}"))
            continue
        if not _VERSION.fullmatch(number) or raw.get("name") != stem or not raw.get("namespace"):
            problems.append((path, "must be `<product>.<event>` in history/<event>/<version from 1>.avsc"))
            continue
        found.setdefault(f"{raw['namespace']}.{stem}", {})[int(number)] = schema
    for event, versions in found.items():
        if sorted(versions) != list(range(1, len(versions) + 1)):
            problems.append(
                (
                    f"{FOLDER}{event.partition('.')[2]}",
                    f"versions {sorted(versions)} have a gap; restore the missing one",
                )
            )
    return History({event: tuple(v[n] for n in sorted(v)) for event, v in found.items()}), problems


def current_schemas(files: Mapping[str, bytes]) -> Iterator[tuple[str, str, Any]]:
    """(stem, event type, parsed schema) of each `events/*.avsc` that is a schema."""
    for path in sorted(files):
        if path.startswith("events/") and path.endswith(".avsc"):
            try:
                raw = json.loads(files[path])
                found = f"{raw.get('namespace', '')}.{raw['name']}", avro.parse(raw)
            except Exception:  # noqa: BLE001, S112 checking the folder tells of it, with the line
                continue
            yield path.removeprefix("events/").removesuffix(".avsc"), *found


def breaks(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """What recorded history forbids, as (file, message): a schema that cannot read a recorded version, one that
    was recorded and is gone, and a history that is not whole.
    """
    history, problems = read_history(files)
    seen: set[str] = set()
    for stem, event_type, schema in current_schemas(files):
        seen.add(event_type)
        for number, version in enumerate(history.versions(event_type), start=1):
            problems += [
                (f"events/{stem}.avsc", f"cannot read what version {number} wrote: {reason}")
                for reason in incompatibilities(schema, version)
            ]
    problems += [
        (f"events/{event.partition('.')[2]}.avsc", "is gone, and bodies of it may still be in topics")
        for event in history.by_event
        if event not in seen
    ]
    return sorted(problems)


def additions(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files to add so that every current schema is recorded, by path; nothing that exists is changed."""
    history, _ = read_history(files)
    added: dict[str, bytes] = {}
    for stem, event_type, schema in current_schemas(files):
        versions = history.versions(event_type)
        if not versions or avro.fingerprint_of(versions[-1]) != avro.fingerprint_of(schema):
            added[f"{FOLDER}{stem}/{len(versions) + 1}.avsc"] = files[f"events/{stem}.avsc"]
    return added


def unrecorded(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Schemas that are new or changed and not in the history yet, as (file, message)."""
    message = "is not recorded as the newest version; run `tellonce schemas record`"
    return sorted((f"events/{path.split('/')[1]}.avsc", message) for path in additions(files))
