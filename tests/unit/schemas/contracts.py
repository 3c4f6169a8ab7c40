"""Contracts and catalogues made in the test that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas import avro
from schemas.codec import EventContract
from schemas.products.catalogue import Catalogue, LoadedProduct
from schemas.products.model import Product


def schema_of(*fields: dict[str, Any], name: str = "ordered", namespace: str = "cards") -> dict[str, Any]:
    """A record schema with these fields."""
    return {"type": "record", "name": name, "namespace": namespace, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """One field of a record."""
    return {"name": name, "type": kind, **more}


def contract_of(
    *fields: dict[str, Any],
    name: str = "ordered",
    older: Sequence[dict[str, Any]] = (),
    confluent: dict[int, dict[str, Any]] | None = None,
) -> EventContract:
    """The contract of `cards.<name>`; `older` schemas are its history, `confluent` its registry ids."""
    raw = schema_of(*fields, name=name)
    reader = avro.parse(raw)
    writers = {avro.fingerprint_of(schema): schema for schema in (*map(avro.parse, older), reader)}
    ids = {number: avro.parse(schema) for number, schema in (confluent or {}).items()}
    return EventContract(f"cards.{name}", raw, avro.Writers(reader, writers, ids))


def catalogue_of(*contracts: EventContract) -> Catalogue:
    """A catalogue with the product `cards` alone."""
    product = Product(product="cards", subject="card")
    return Catalogue([LoadedProduct(product, {contract.event_type: contract for contract in contracts})])
