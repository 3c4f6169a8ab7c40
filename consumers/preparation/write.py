"""What is prepared, written: notifications, deliveries and their announcements, one statement each."""

from __future__ import annotations

from collections.abc import Sequence

from consumers.preparation.model import Delivery, Notification, Prepared
from consumers.preparation.queries import QUERIES
from consumers.runtime.arrays import nullable_array, text_array
from consumers.runtime.tx import Tx
from schemas.platform_events import DELIVERY_READY, deliveries_topic, delivery_ready
from schemas.products.audience import Channel


def write(tx: Tx, product: str, prepared: Sequence[Prepared]) -> None:
    """Insert what these intents came to, in their order; last of all that a group writes but its decisions."""
    notified = [(each, told) for each in prepared for told in each.notifications]
    if not notified:
        return
    _notify(tx, product, notified)
    sent = [(each, told, delivery) for each, told in notified for delivery in told.deliveries]
    _queue(tx, product, sent)
    _announce(tx, product, sent)


def _notify(tx: Tx, product: str, notified: Sequence[tuple[Prepared, Notification]]) -> None:
    intents = [each.intent for each, _ in notified]
    tx.run(
        QUERIES["insert_notifications"],
        {
            "product": product,
            "now": tx.now,
            "notification_ids": text_array([told.notification_id for _, told in notified]),
            "tenant_ids": text_array([intent.tenant_id for intent in intents]),
            "subject_ids": text_array([intent.subject_id for intent in intents]),
            "kinds": text_array([intent.kind for intent in intents]),
            "intent_ids": text_array([intent.intent_id for intent in intents]),
            "event_ids": text_array([intent.event_id for intent in intents]),
            "nudge_ids": nullable_array([intent.nudge_id for intent in intents]),
            "user_ids": text_array([told.user_id for _, told in notified]),
            "roles": text_array([told.role for _, told in notified]),
            "locales": text_array([told.locale for _, told in notified]),
            "zones": text_array([told.zone for _, told in notified]),
        },
        expect=len(notified),
    )


def _queue(tx: Tx, product: str, sent: Sequence[tuple[Prepared, Notification, Delivery]]) -> None:
    intents = [each.intent for each, _, _ in sent]
    tx.run(
        QUERIES["insert_deliveries"],
        {
            "product": product,
            "now": tx.now,
            "delivery_ids": text_array([delivery.delivery_id for _, _, delivery in sent]),
            "tenant_ids": text_array([intent.tenant_id for intent in intents]),
            "notification_ids": text_array([told.notification_id for _, told, _ in sent]),
            "subject_ids": text_array([intent.subject_id for intent in intents]),
            "kinds": text_array([intent.kind for intent in intents]),
            "user_ids": text_array([told.user_id for _, told, _ in sent]),
            "roles": text_array([delivery.role for _, _, delivery in sent]),
            "channels": text_array([delivery.channel.value for _, _, delivery in sent]),
            "lanes": text_array([intent.lane for intent in intents]),
            "nudge_ids": nullable_array([intent.nudge_id for intent in intents]),
            "event_ids": text_array([intent.event_id for intent in intents]),
            "expires": [each.expires_at for each, _, _ in sent],
        },
        expect=len(sent),
    )


def _announce(tx: Tx, product: str, sent: Sequence[tuple[Prepared, Notification, Delivery]]) -> None:
    intents = [each.intent for each, _, _ in sent]
    records = [
        delivery_ready(intent.event_id, intent.tenant_id, delivery.delivery_id)
        for intent, (_, _, delivery) in zip(intents, sent, strict=True)
    ]
    tx.run(
        QUERIES["announce"],
        {
            "product": product,
            "now": tx.now,
            "event_type": DELIVERY_READY,
            "event_ids": text_array([record.event_id for record in records]),
            "tenant_ids": text_array([intent.tenant_id for intent in intents]),
            "subject_ids": text_array([intent.subject_id for intent in intents]),
            "key_ids": text_array([_key_of(each, told, delivery) for each, told, delivery in sent]),
            "topics": text_array([deliveries_topic(delivery.channel) for _, _, delivery in sent]),
            "payloads": text_array([record.payload.decode() for record in records]),
            "traceparents": nullable_array([intent.traceparent for intent in intents]),
        },
        expect=len(sent),
    )


def _key_of(each: Prepared, told: Notification, delivery: Delivery) -> str:
    """What orders the announcement: what a person sees in the application is ordered per user."""
    return told.user_id if delivery.channel is Channel.INAPP else each.intent.subject_id
