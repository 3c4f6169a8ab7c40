"""Avro schemas as values: parsed, fingerprinted, and read as framed bodies name them.

Two framings are known. Single-object encoding: `C3 01`, the writer schema's CRC-64-AVRO fingerprint in eight
little-endian bytes, the body. Confluent's: `00`, a registry's id in four big-endian bytes, the body; the ids
a product accepts stand in its `confluent_ids`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
from fastavro.schema import fingerprint, to_parsing_canonical_form

SINGLE_OBJECT = b"\xc3\x01"
CONFLUENT = b"\x00"
_SINGLE_HEAD = 10
_CONFLUENT_HEAD = 5


class AvroError(ValueError):
    """The bytes do not read as the schema says, or name a schema that is not known."""


class UnknownWriterSchema(AvroError):  # noqa: N818 the name says what is not known
    """The framing names a schema that the product's history does not have."""


def parse(schema: Mapping[str, Any]) -> Any:
    """A schema ready to read and write with; raises fastavro's SchemaParseException."""
    return fastavro.parse_schema(dict(schema))


def fingerprint_of(schema: Any) -> bytes:
    """CRC-64-AVRO of the schema's parsing canonical form, little-endian as single-object encoding has it."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


@dataclass(frozen=True, slots=True)
class Writers:
    """Every schema that a body of one event type may have been written with."""

    reader: Any
    by_fingerprint: Mapping[bytes, Any]
    by_confluent_id: Mapping[int, Any] = field(default_factory=dict)

    def is_framed(self, body: bytes) -> bool:
        """Whether the bytes say that they are Avro; JSON never begins so."""
        return body.startswith((SINGLE_OBJECT, CONFLUENT))

    def read(self, body: bytes) -> dict[str, Any]:
        """The record in a framed body, as today's schema sees it; raises `AvroError`."""
        if body.startswith(SINGLE_OBJECT):
            key, rest = body[2:_SINGLE_HEAD], body[_SINGLE_HEAD:]
            writer = self.by_fingerprint.get(key)
            named = f"fingerprint {key[::-1].hex()}"
        else:
            number, rest = int.from_bytes(body[1:_CONFLUENT_HEAD], "big"), body[_CONFLUENT_HEAD:]
            writer = self.by_confluent_id.get(number)
            named = f"registry id {number}"
        if writer is None:
            raise UnknownWriterSchema(
                f"written with a schema that is not in the product's history ({named}); record it with "
                "`tellonce schemas record`, or name its id under `confluent_ids`, then retry the dead letter"
            )
        stream = io.BytesIO(rest)
        try:
            record = fastavro.schemaless_reader(stream, writer, self.reader)
        except Exception as error:  # fastavro raises whatever the bytes made it stumble over
            raise AvroError(f"does not read as Avro of the schema it names: {error!r}") from error
        if stream.tell() != len(rest):
            raise AvroError(f"has {len(rest) - stream.tell()} bytes behind the record")
        if not isinstance(record, dict):
            raise AvroError("is not a record")
        return record

    def write(self, record: Mapping[str, Any]) -> bytes:
        """The record in single-object encoding of today's schema."""
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self.reader, dict(record))
        return SINGLE_OBJECT + fingerprint_of(self.reader) + stream.getvalue()
