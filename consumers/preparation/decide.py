"""Who is told, and on which channels: pure.

Recipients come from current truth; somebody who has several of a kind's roles is told once per channel, in the first
role that the kind names. Candidate channels are those that an audience names and that reach the person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from consumers.preparation.model import (
    ADDRESS,
    USER,
    Delivery,
    Directory,
    Holder,
    Intent,
    Notification,
    Person,
    Prepared,
    UserKey,
    Wanted,
)
from schemas.ids import derived_id
from schemas.products.audience import Addresses, Audience, Channel, Users
from schemas.products.model import Kind, Product

_PHONE = re.compile(r"\+[1-9][0-9]{6,14}").fullmatch
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+").fullmatch
_USER_ID = re.compile(r"[^:]{1,128}", re.DOTALL).fullmatch


class Addressee(Person):
    """An address in a person's place: it is reached as what it is, and by nothing inside an application."""

    __slots__ = ()

    def is_reached_by(self, channel: Channel) -> bool:
        return channel is not Channel.INAPP and super().is_reached_by(channel)


class Recipient(NamedTuple):
    """Somebody whom an audience names, and in which role."""

    person: Person
    role: str


def want(
    wanted: Wanted,
    audiences: Iterable[Audience],
    tenant_id: str,
    subject_id: str,
    payload: Mapping[str, object],
) -> None:
    """Note what resolving these audiences for this subject needs."""
    for audience in audiences:
        match audience.who:
            case Users(users=users):
                wanted.people.update(UserKey(tenant_id, user) for user in users)
            case Addresses():
                pass
            case role:
                if audience.payload_field is None:
                    wanted.holders.add(Holder(tenant_id, subject_id, role))
                elif (user := _user_in(payload, audience.payload_field)) is not None:
                    wanted.people.add(UserKey(tenant_id, user))


def distinct(kinds: Iterable[Kind]) -> tuple[Audience, ...]:
    """The audiences of all these kinds, each "who" once: what has to be looked up for any of them."""
    return tuple({str(audience.who): audience for kind in kinds for audience in kind.audiences}.values())


def prepare(product: Product, intent: Intent, directory: Directory) -> Prepared:
    """The intent's notifications, each with at least one delivery; none when there is nobody to tell."""
    kind = product.kinds[intent.kind]
    told: dict[str, tuple[Recipient, dict[Channel, str]]] = {}
    for audience in kind.audiences:
        for recipient in _recipients(product, audience, intent, directory):
            if not recipient.person.is_active:
                continue
            reached = [channel for channel in audience.channels if recipient.person.is_reached_by(channel)]
            if not reached:
                continue
            _, channels = told.setdefault(recipient.person.user_id, (recipient, {}))
            for channel in reached:
                channels.setdefault(channel, recipient.role)
    return Prepared(
        intent,
        None if kind.expires_after is None else intent.valid_from + kind.expires_after,
        tuple(_notification(intent, recipient, channels) for recipient, channels in told.values()),
    )


def notification_id(cause: str, tenant: str, kind: str, user: str) -> str:
    """Of what a person is told: once, whatever roles they have."""
    return derived_id(cause, tenant, "notification", kind, user)


def delivery_id(cause: str, tenant: str, kind: str, user: str, channel: Channel) -> str:
    """Of what a person is told on a channel."""
    return derived_id(cause, tenant, "delivery", kind, user, channel)


def _notification(intent: Intent, recipient: Recipient, channels: Mapping[Channel, str]) -> Notification:
    person = recipient.person
    cause, tenant, kind, user = intent.event_id, intent.tenant_id, intent.kind, person.user_id
    return Notification(
        notification_id(cause, tenant, kind, user),
        user,
        recipient.role,
        person.locale,
        person.zone,
        tuple(
            Delivery(delivery_id(cause, tenant, kind, user, channel), channel, role)
            for channel, role in channels.items()
        ),
    )


def _recipients(
    product: Product, audience: Audience, intent: Intent, directory: Directory
) -> Iterator[Recipient]:
    match audience.who:
        case Users(users=users):
            for user in users:
                yield from _known(directory.people.get(UserKey(intent.tenant_id, user)), USER)
        case Addresses(addresses=addresses):
            for address in addresses:
                yield Recipient(_addressee(address, product.default_locale), ADDRESS)
        case role:
            if audience.payload_field is None:
                holder = Holder(intent.tenant_id, intent.subject_id, role)
                yield from _known(directory.holders.get(holder), role)
            elif (named := _user_in(intent.payload, audience.payload_field)) is not None:
                yield from _known(directory.people.get(UserKey(intent.tenant_id, named)), role)


def _known(person: Person | None, role: str) -> Iterator[Recipient]:
    if person is not None:
        yield Recipient(person, role)


def _addressee(address: str, locale: str) -> Addressee:
    return Addressee(address, True, locale, "UTC", _EMAIL(address) is not None, _PHONE(address) is not None)


def _user_in(payload: Mapping[str, object], field: str) -> str | None:
    """The user's id that a payload names, None when it names none that could be one."""
    value = payload.get(field)
    return value if isinstance(value, str) and _USER_ID(value) else None
