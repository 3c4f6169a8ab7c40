"""An event, and its way through Kafka: CloudEvents attributes as headers around an Avro or JSON body.

    key           <tenant>:<subject>; <tenant>:<user> for in-app deliveries
    ce_id         the event's UUID           ce_tenant     the tenant
    ce_type       <product>.<name>           ce_time       when it happened, RFC 3339
    ce_source     the product                recorded_at   when the database took it, RFC 3339
    ce_subject    the subject                content-type  application/json, avro/binary
    traceparent   W3C trace context, may be absent

`decode` is on the path of every record: keep it under 8 µs for a JSON body of five fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, NewType, NoReturn

from schemas.codec import BodyError
from schemas.names import did_you_mean
from schemas.products.catalogue import Catalogue, LoadedProduct, Stream
from schemas.states import DeadReason

EventId = NewType("EventId", str)
TenantId = NewType("TenantId", str)
SubjectId = NewType("SubjectId", str)
ProductName = NewType("ProductName", str)
EventType = NewType("EventType", str)
Topic = NewType("Topic", str)

Headers = Sequence[tuple[str, bytes | None]]

PAYLOAD_LIMIT = 262_144
"""Bytes of a body. The outbox refuses more; here it bounds what a foreign producer can make us parse."""

_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").fullmatch
_TENANT = re.compile(rb"[a-z0-9-]{1,40}").fullmatch
_SUBJECT = re.compile(r"[^:]{1,128}", re.DOTALL).fullmatch


class Event(NamedTuple):
    """A fact. Times are aware and in UTC; the payload has Python values, whatever form the body had.

    A named tuple, as what is made per record is throughout: a frozen dataclass takes four times as long to make.
    """

    event_id: EventId
    tenant_id: TenantId
    product: ProductName
    subject_id: SubjectId
    event_type: EventType
    occurred_at: datetime
    recorded_at: datetime
    payload: Mapping[str, object]
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """As much of a refused record's identity as its headers gave, unverified."""

    tenant_id: str | None = None
    event_id: str | None = None
    event_type: str | None = None


class ContractError(Exception):
    """A record that is not what its contract says. The message names what, where, and how to mend it."""

    def __init__(self, reason: DeadReason, message: str, partial: Identity) -> None:
        super().__init__(message)
        self.reason = reason
        self.partial = partial


def decode(
    topic: str,
    key: bytes | None,
    headers: Headers | None,
    value: bytes | None,
    *,
    catalogue: Catalogue,
    payload_limit: int = PAYLOAD_LIMIT,
) -> Event:
    """The event that a record carries; raises `ContractError` for every record that carries none.

    The headers are the record's word, the key is what it was ordered by, the topic is where it was found: all
    three must agree. A header that comes twice counts with its last value.
    """
    found = dict(headers or ())
    try:
        event_id, tenant, product = found["ce_id"], found["ce_tenant"], found["ce_source"]
        subject, event_type, content_type = found["ce_subject"], found["ce_type"], found["content-type"]
        occurred, recorded = found["ce_time"], found["recorded_at"]
        subject_id = subject.decode()  # type: ignore[union-attr]  # None is the AttributeError below
        if product is None or content_type is None or not _SUBJECT(subject_id):
            _refuse_header(found)
        if not (_UUID(event_id) and _TENANT(tenant)):  # type: ignore[arg-type]  # None is the TypeError below
            _refuse_header(found)
        loaded: LoadedProduct | Stream | None = catalogue.of_topic(topic)
        if loaded is None or loaded.source != product:
            loaded = _stream(found, topic, loaded, catalogue)
        if key != tenant + b":" + subject:  # type: ignore[operator]  # None is the TypeError below
            _check_key(found, key, loaded)
        contract = loaded.events.get(event_type.decode())  # type: ignore[union-attr]  # as above
        if contract is None:
            _refuse_type(found, loaded)
        occurred_at = _instant(occurred.decode())  # type: ignore[union-attr]  # as above
        recorded_at = _instant(recorded.decode())  # type: ignore[union-attr]  # as above
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        _refuse_header(found)
    if not value:
        _refuse_empty(found)
    if len(value) > payload_limit:
        _refuse_size(found, len(value), payload_limit)
    trace = found.get("traceparent")
    try:
        return Event(
            event_id.decode(),  # type: ignore[union-attr,arg-type]  # matched above
            tenant.decode(),  # type: ignore[union-attr,arg-type]  # matched above
            loaded.name,  # type: ignore[arg-type]  # checked with its folder
            subject_id,  # type: ignore[arg-type]  # matched above
            contract.event_type,  # type: ignore[arg-type]  # checked by the catalogue
            occurred_at,
            recorded_at,
            contract.read(value, content_type),
            None if trace is None else trace.decode("ascii", "ignore"),
        )
    except BodyError as error:
        _refuse(error.reason, str(error), found)


def encode_headers(event: Event, content_type: str = "application/json") -> list[tuple[str, bytes | None]]:
    """The headers that the connector puts around an event's body: what `decode` reads, for tests and replays.

    The key that goes with them is `<tenant>:<subject>`.
    """
    named = {
        "ce_id": event.event_id,
        "ce_type": event.event_type,
        "ce_source": event.product,
        "ce_subject": event.subject_id,
        "ce_time": _rfc3339(event.occurred_at),
        "ce_tenant": event.tenant_id,
        "content-type": content_type,
        "traceparent": event.traceparent,
        "recorded_at": _rfc3339(event.recorded_at),
    }
    return [(name, None if value is None else value.encode()) for name, value in named.items()]


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


_NEEDED = (
    "ce_id",
    "ce_tenant",
    "ce_source",
    "ce_subject",
    "ce_type",
    "content-type",
    "ce_time",
    "recorded_at",
)


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no zone")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")


def _refuse(reason: DeadReason, message: str, found: Mapping[str, bytes | None]) -> NoReturn:
    identity = Identity(_text(found.get("ce_tenant")), _text(found.get("ce_id")), _text(found.get("ce_type")))
    raise ContractError(reason, message, identity) from None


def _refuse_header(found: Mapping[str, bytes | None]) -> NoReturn:
    """Says which header; reached only when one of them is absent or not what it must be."""
    origin = "records come from the outbox through the connector, which sets it"
    for name in _NEEDED:
        if found.get(name) is None:
            _refuse(DeadReason.MISSING_HEADER, f"header {name} is missing; {origin}", found)
    shape = f"is malformed; {origin}"
    if not _UUID(found["ce_id"] or b""):
        _refuse(DeadReason.MALFORMED_HEADER, f"header ce_id {_text(found['ce_id'])!r} {shape}", found)
    if not _TENANT(found["ce_tenant"] or b""):
        _refuse(DeadReason.MALFORMED_HEADER, f"header ce_tenant {_text(found['ce_tenant'])!r} {shape}", found)
    for name in ("ce_time", "recorded_at"):
        try:
            _instant((found[name] or b"").decode())
        except (ValueError, OverflowError):
            _refuse(
                DeadReason.MALFORMED_HEADER,
                f"header {name} {_text(found[name])!r} is no instant such as 2026-12-01T09:00:00Z",
                found,
            )
    try:
        if not _SUBJECT((found["ce_subject"] or b"").decode()):
            why = "1 to 128 characters without a colon"
            _refuse(DeadReason.MALFORMED_HEADER, f"header ce_subject must be {why}", found)
        (found["ce_type"] or b"").decode()
    except UnicodeDecodeError as error:
        _refuse(DeadReason.MALFORMED_HEADER, f"a header {shape}: {error.object!r} is not UTF-8", found)
    raise AssertionError(f"headers that were refused are in order: {dict(found)!r}")


def _stream(
    found: Mapping[str, bytes | None], topic: str, loaded: LoadedProduct | Stream | None, catalogue: Catalogue
) -> Stream:
    """The product's records on a topic of the platform's own; anything else is refused."""
    if loaded is None:
        streams = catalogue.streams_of(topic)
        stream = None if streams is None else streams.get(found["ce_source"] or b"")
        if stream is not None:
            return stream
        if streams is None or _text(found["ce_source"]) not in catalogue.products:
            _refuse_product(found, topic, catalogue)
    _refuse(
        DeadReason.WRONG_PRODUCT,
        f"header ce_source says {_text(found.get('ce_source'))!r} on topic {topic}",
        found,
    )


def _refuse_product(found: Mapping[str, bytes | None], topic: str, catalogue: Catalogue) -> NoReturn:
    here = ", ".join(sorted(catalogue.products)) or "none"
    what = f"product {_text(found['ce_source'])!r} on" if catalogue.streams_of(topic) else "product has"
    _refuse(
        DeadReason.UNKNOWN_PRODUCT,
        f"no {what} topic {topic}; there are {here}. Name its folder in TELLONCE_PRODUCTS.",
        found,
    )


def _check_key(found: Mapping[str, bytes | None], key: bytes | None, loaded: LoadedProduct | Stream) -> None:
    """A key that is not the subject's is in order only where records are keyed by the user."""
    if isinstance(loaded, Stream) and not loaded.is_keyed_by_subject and key is not None:
        tenant, _, user = key.partition(b":")
        if tenant == found["ce_tenant"] and _is_id(user):
            return
    _refuse_key(found, key)


def _is_id(key_id: bytes) -> bool:
    try:
        return _SUBJECT(key_id.decode()) is not None
    except UnicodeDecodeError:
        return False


def _refuse_key(found: Mapping[str, bytes | None], key: bytes | None) -> NoReturn:
    if key is None:
        _refuse(DeadReason.MISSING_HEADER, "the record has no key; it must be <tenant>:<subject>", found)
    tenant, _, subject = key.partition(b":")
    if tenant != found["ce_tenant"]:
        _refuse(
            DeadReason.WRONG_TENANT,
            f"header ce_tenant says {_text(found['ce_tenant'])!r}, the key says {_text(tenant)!r}",
            found,
        )
    _refuse(
        DeadReason.WRONG_SUBJECT,
        f"header ce_subject says {_text(found['ce_subject'])!r}, the key says {_text(subject)!r}",
        found,
    )


def _refuse_type(found: Mapping[str, bytes | None], loaded: LoadedProduct | Stream) -> NoReturn:
    name = _text(found["ce_type"]) or ""
    near = did_you_mean(name, loaded.events)
    _refuse(
        DeadReason.UNKNOWN_TYPE,
        f"product {loaded.name} has no event type {name!r}{near or '.'} A newer product may "
        "have it: deploy that, then retry the dead letter",
        found,
    )


def _refuse_empty(found: Mapping[str, bytes | None]) -> NoReturn:
    _refuse(
        DeadReason.EMPTY, "the record has no body; an event's payload is a JSON object or framed Avro", found
    )


def _refuse_size(found: Mapping[str, bytes | None], size: int, limit: int) -> NoReturn:
    _refuse(
        DeadReason.OVERSIZED,
        f"the body has {size} bytes, the limit is {limit}; keep large content elsewhere and send its id",
        found,
    )
