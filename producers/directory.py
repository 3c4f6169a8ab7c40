"""The directory of people: how somebody is reached, and who has a role on a subject.

A domain service keeps it as its own facts change, in the same transaction as the fact and its event: whoever is told
because of the event is told as the directory stands then. Messages are addressed when they are prepared and checked
again when they are sent, so a change reaches what is not sent yet.

Every function is a statement on the caller's connection (role in group `domain`) and may be repeated. What the database
refuses, such as an address with a line break or a zone it does not know, is its `IntegrityError` or `DataError`, and
names the column.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from psycopg import Connection

from connectors.postgres import sql

_QUERIES = sql.load("producers", "directory.sql")


@dataclass(frozen=True, slots=True)
class Contact:
    """How a person is reached. Personal data: it stays in Postgres, where it can be erased."""

    first_name: str | None = None
    email: str | None = None
    phone: str | None = None
    """E.164, such as +4930123456."""
    locale: str = "en"
    """`de`, `pt-BR`: the language and conventions that messages come in."""
    zone: str = "UTC"
    """IANA name, such as Europe/Berlin."""
    active: bool = True
    """False: nothing is told to this person any more."""


def put_contact(conn: Connection[Any], tenant_id: str, user_id: str, contact: Contact) -> None:
    """This is how the user is reached from now on; replaces what was known."""
    conn.execute(_QUERIES["put_contact"], {"tenant": tenant_id, "user": user_id, **asdict(contact)})


def set_phone(conn: Connection[Any], tenant_id: str, user_id: str, phone: str) -> bool:
    """The user's number is another; False when there is no contact to change."""
    values = {"tenant": tenant_id, "user": user_id, "phone": phone}
    return conn.execute(_QUERIES["set_phone"], values).rowcount == 1


def forget(conn: Connection[Any], tenant_id: str, user_id: str) -> bool:
    """Erase the contact; nothing is told to the user any more. False when there was none."""
    return conn.execute(_QUERIES["forget"], {"tenant": tenant_id, "user": user_id}).rowcount == 1


def assign(
    conn: Connection[Any], tenant_id: str, product: str, subject_id: str, role: str, user_id: str
) -> None:
    """The user has this role on the subject from now on, and whoever had it has it no more."""
    conn.execute(_QUERIES["assign"], {**_place(tenant_id, product, subject_id, role), "user": user_id})


def unassign(conn: Connection[Any], tenant_id: str, product: str, subject_id: str, role: str) -> bool:
    """Nobody has this role on the subject any more; False when nobody had."""
    return conn.execute(_QUERIES["unassign"], _place(tenant_id, product, subject_id, role)).rowcount == 1


def _place(tenant_id: str, product: str, subject_id: str, role: str) -> dict[str, str]:
    return {"tenant": tenant_id, "product": product, "subject": subject_id, "role": role}
