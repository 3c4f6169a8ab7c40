"""One event type's body, decoded by what it is: framed Avro, or JSON held against the same schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import orjson

from schemas import avro
from schemas.json_form import Mismatch, compile_check
from schemas.states import DeadReason

JSON_TYPE = b"application/json"
AVRO_TYPE = b"avro/binary"
_JSON_SPACE = b" \t\n\r"


class BodyError(ValueError):
    """A body that is no event of its type: the reason, and what is wrong in words."""

    def __init__(self, reason: DeadReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class EventContract:
    """What an event type's payload must be. Immutable; safe to share between threads."""

    __slots__ = ("_check", "_writers", "event_type", "fields", "schema")

    def __init__(self, event_type: str, schema: Mapping[str, Any], writers: avro.Writers) -> None:
        self.event_type = event_type
        self.schema = schema
        """The schema as the product has it."""
        self.fields: Mapping[str, object] = {item["name"]: item["type"] for item in schema["fields"]}
        """Payload fields with their Avro types."""
        self._writers = writers
        self._check = compile_check(writers.reader)

    def read(self, body: bytes, content_type: bytes) -> Mapping[str, object]:
        """The payload in Python's form, the same whatever form the body has; raises `BodyError`."""
        if body[:1] == b"{" or body.lstrip(_JSON_SPACE)[:1] == b"{":  # the outbox admits space before it
            try:
                return self.accept(orjson.loads(body))
            except orjson.JSONDecodeError as error:
                raise BodyError(DeadReason.UNDECODABLE, f"{self.event_type}: not JSON: {error}") from None
        if not self._writers.is_framed(body):
            raise BodyError(
                DeadReason.UNDECODABLE,
                f"{self.event_type}: content-type says {content_type.decode('utf-8', 'replace')!r}, and the "
                "body is neither a JSON object nor framed Avro; send JSON, or single-object encoding",
            )
        try:
            return self._writers.read(body)
        except avro.UnknownWriterSchema as error:
            raise BodyError(DeadReason.UNKNOWN_SCHEMA, f"{self.event_type}: {error}") from None
        except avro.AvroError as error:
            raise BodyError(DeadReason.CORRUPT_AVRO, f"{self.event_type}: {error}") from None

    def accept(self, value: object) -> Mapping[str, object]:
        """A JSON value as a payload; raises `BodyError` naming the field."""
        try:
            return cast("Mapping[str, object]", self._check(value))
        except Mismatch as error:
            raise BodyError(DeadReason.SCHEMA_MISMATCH, f"{self.event_type}: {error}") from None
        except RecursionError:
            raise BodyError(DeadReason.SCHEMA_MISMATCH, f"{self.event_type}: is nested too deeply") from None

    def body(self, payload: Mapping[str, object]) -> bytes:
        """The payload as a JSON body; raises `BodyError` saying which field is wrong."""
        self.accept(payload)
        return orjson.dumps(payload)

    def avro_body(self, payload: Mapping[str, object]) -> bytes:
        """A payload in JSON's form as a single-object body; raises `BodyError` naming the field."""
        return self._writers.write(self.accept(payload))
