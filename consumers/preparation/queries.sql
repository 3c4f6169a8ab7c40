-- Preparation: look-ups in the directory, then notifications, deliveries and their announcements, in the house's order.

-- Why look-ups are LATERAL … OFFSET 0: see consumers/runtime/queries.sql.

-- name: holders
-- Who has a role on a subject now, if there is a contact for them.
SELECT wanted.tenant_id, wanted.subject_id, wanted.role,
       person.user_id, person.active, person.locale, person.zone, person.has_email, person.has_phone
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[], %(roles)s::text[])
       AS wanted (tenant_id, subject_id, role)
 CROSS JOIN LATERAL (
       SELECT user_id
         FROM platform.assignment
        WHERE tenant_id = wanted.tenant_id AND product = %(product)s AND subject_id = wanted.subject_id
          AND role = wanted.role
       OFFSET 0) AS holder
 CROSS JOIN LATERAL (
       SELECT user_id, active, locale, zone, email IS NOT NULL AS has_email, phone IS NOT NULL AS has_phone
         FROM platform.contact
        WHERE tenant_id = wanted.tenant_id AND user_id = holder.user_id
       OFFSET 0) AS person;

-- name: people
SELECT wanted.tenant_id,
       person.user_id, person.active, person.locale, person.zone, person.has_email, person.has_phone
  FROM unnest(%(tenant_ids)s::text[], %(user_ids)s::text[]) AS wanted (tenant_id, user_id)
 CROSS JOIN LATERAL (
       SELECT user_id, active, locale, zone, email IS NOT NULL AS has_email, phone IS NOT NULL AS has_phone
         FROM platform.contact
        WHERE tenant_id = wanted.tenant_id AND user_id = wanted.user_id
       OFFSET 0) AS person;

-- name: insert_notifications
INSERT INTO platform.notification
       (notification_id, tenant_id, product, subject_id, kind, intent_id, event_id, nudge_id, user_id, role, locale, zone,
        created_at)
SELECT born.notification_id, born.tenant_id, %(product)s, born.subject_id, born.kind, born.intent_id, born.event_id,
       born.nudge_id, born.user_id, born.role, born.locale, born.zone, %(now)s
  FROM unnest(%(notification_ids)s::uuid[], %(tenant_ids)s::text[], %(subject_ids)s::text[], %(kinds)s::text[],
              %(intent_ids)s::uuid[], %(event_ids)s::uuid[], %(nudge_ids)s::uuid[], %(user_ids)s::text[],
              %(roles)s::text[], %(locales)s::text[], %(zones)s::text[])
       WITH ORDINALITY
       AS born (notification_id, tenant_id, subject_id, kind, intent_id, event_id, nudge_id, user_id, role, locale, zone,
                ordinal)
 ORDER BY born.ordinal;

-- name: insert_deliveries
-- seq follows the order of the records and of what each of them emits. The account is settled when it is claimed: until
-- then it is the channel's.
INSERT INTO platform.delivery
       (delivery_id, tenant_id, notification_id, product, subject_id, kind, user_id, role, channel, account, lane,
        nudge_id, event_id, due_at, expires_at, created_at, updated_at)
SELECT born.delivery_id, born.tenant_id, born.notification_id, %(product)s, born.subject_id, born.kind, born.user_id,
       born.role, born.channel, born.channel, born.lane, born.nudge_id, born.event_id, %(now)s, born.expires_at, %(now)s,
       %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(notification_ids)s::uuid[], %(subject_ids)s::text[],
              %(kinds)s::text[], %(user_ids)s::text[], %(roles)s::text[], %(channels)s::text[], %(lanes)s::text[],
              %(nudge_ids)s::uuid[], %(event_ids)s::uuid[], %(expires)s::timestamptz[])
       WITH ORDINALITY
       AS born (delivery_id, tenant_id, notification_id, subject_id, kind, user_id, role, channel, lane, nudge_id, event_id,
                expires_at, ordinal)
 ORDER BY born.ordinal;

-- name: announce
-- The next stage's records, captured from the same commit.
INSERT INTO platform.outbox
       (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, occurred_at, traceparent)
SELECT told.event_id, told.tenant_id, %(product)s, told.subject_id, told.key_id, told.topic, %(event_type)s,
       'application/json', convert_to(told.payload, 'UTF8'), %(now)s, told.traceparent
  FROM unnest(%(event_ids)s::uuid[], %(tenant_ids)s::text[], %(subject_ids)s::text[], %(key_ids)s::text[],
              %(topics)s::text[], %(payloads)s::text[], %(traceparents)s::text[])
       WITH ORDINALITY AS told (event_id, tenant_id, subject_id, key_id, topic, payload, traceparent, ordinal)
 ORDER BY told.ordinal;
