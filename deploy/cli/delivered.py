"""Deliveries, read with their attempts and bodies; addresses and contents stay where they are unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row

from connectors.postgres.sql import load
from consumers.delivery.operate import DeliveryRefused
from deploy.cli.messages import Attempt, Delivery, Message, shape, with_attempts

QUERIES = load("deploy.cli", "queries.sql")


def deliveries(
    conn: psycopg.Connection[Any],
    *,
    delivery_id: str | None = None,
    tenant: str | None = None,
    product: str | None = None,
    subject: str | None = None,
    states: Sequence[str] | None = None,
    channel: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
) -> list[Delivery]:
    """The latest first, narrowed by what is given; needs only to read."""
    parameters = {
        "delivery_id": delivery_id,
        "tenant": tenant,
        "product": product,
        "subject": subject,
        "states": states,
        "channel": channel,
        "kind": kind,
        "limit": limit,
    }
    with conn.cursor(row_factory=class_row(Delivery)) as cursor:
        return cursor.execute(QUERIES.deliveries, parameters).fetchall()


def told(conn: psycopg.Connection[Any], found: Sequence[Delivery]) -> list[Message]:
    """These deliveries with their attempts, and what became of each in words."""
    if not found:
        return []
    ids = [each.delivery_id for each in found]
    with conn.cursor(row_factory=class_row(Attempt)) as cursor:
        attempts = cursor.execute(QUERIES.attempts, {"delivery_ids": ids}).fetchall()
    return with_attempts(found, attempts)


def look_up(
    conn: psycopg.Connection[Any], delivery_id: str, *, with_body: bool
) -> tuple[Message, dict[str, object] | None]:
    """A delivery with its attempts, and its frozen body: its shape, or all of it. None before it is frozen.

    Raises `DeliveryRefused` when there is none of this id.
    """
    found = told(conn, deliveries(conn, delivery_id=delivery_id))
    if not found:
        raise DeliveryRefused(
            f"there is no delivery {delivery_id}; `tellonce deliveries list` shows which there are"
        )
    message = found[0]
    of_it = {"delivery_id": delivery_id, "tenant": message.delivery.tenant_id}
    row = conn.execute(QUERIES.body, of_it).fetchone()
    return message, None if row is None else _body(*row, with_body=with_body)


def _body(address: str, content: object, frozen_at: datetime, *, with_body: bool) -> dict[str, object]:
    if with_body:
        return {"frozen_at": frozen_at, "address": address, "content": content}
    return {"frozen_at": frozen_at, "shape": shape(content)}
