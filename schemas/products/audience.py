"""Who is told, and on which channels, as a product says it. Who that is in person is resolved late."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Discriminator, Field, StringConstraints, Tag

from schemas.products.part import Part

PAYLOAD_PREFIX = "payload."


class Channel(StrEnum):
    """The ways a person can be told."""

    INAPP = "inapp"
    EMAIL = "email"
    PUSH = "push"
    SMS = "sms"
    WHATSAPP = "whatsapp"
    WEBHOOK = "webhook"
    CHAT = "chat"


class Users(Part):
    """These users, by id."""

    users: tuple[Annotated[str, Field(pattern=r"^[^:]{1,128}$")], ...] = Field(min_length=1)


class Addresses(Part):
    """These addresses: e-mail, telephone number, channel name; they need no user."""

    addresses: tuple[Annotated[str, Field(min_length=1, max_length=320)], ...] = Field(min_length=1)


RoleName = Annotated[
    str,
    StringConstraints(
        pattern=r"^(applicant|advisor|assigned|department_heads|subscribers|payload\.[a-z][a-z0-9_]*)$"
    ),
]
"""`applicant`, `advisor`, `assigned`, `department_heads`, `subscribers`, or `payload.<field>`: a user's id."""


def _form_of(value: Any) -> str:
    if isinstance(value, dict):
        return "addresses" if "addresses" in value else "users"
    if isinstance(value, Users | Addresses):
        return "users" if isinstance(value, Users) else "addresses"
    return "role"


Who = Annotated[
    Annotated[RoleName, Tag("role")]
    | Annotated[Users, Tag("users")]
    | Annotated[Addresses, Tag("addresses")],
    Discriminator(_form_of),
]


class Audience(Part):
    """One group of people and the channels they are told on, as far as each wants and can be reached."""

    who: Who
    channels: tuple[Channel, ...] = Field(min_length=1)

    @property
    def payload_field(self) -> str | None:
        """The payload field that holds the user's id, when it is one."""
        if isinstance(self.who, str) and self.who.startswith(PAYLOAD_PREFIX):
            return self.who.removeprefix(PAYLOAD_PREFIX)
        return None
