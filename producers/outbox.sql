-- The domain's INSERT. topic, key_id and recorded_at are left to the database, which fills them in.

-- name: append
-- Returns nothing when the event was recorded before with the same content.
INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, content_type, payload, occurred_at, traceparent)
VALUES (coalesce(%(event_id)s::uuid, uuidv7()), %(tenant_id)s, %(product)s, %(subject_id)s, %(event_type)s,
        %(content_type)s, %(payload)s, %(occurred_at)s, %(traceparent)s)
RETURNING event_id::text;

-- name: append_many
-- In the order given: a join alone would shuffle it.
INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, content_type, payload, occurred_at, traceparent)
SELECT coalesce(e.event_id::uuid, uuidv7()), e.tenant_id, e.product, e.subject_id, e.event_type, e.content_type, e.payload,
       e.occurred_at, e.traceparent
  FROM unnest(%(event_id)s::text[], %(tenant_id)s::text[], %(product)s::text[], %(subject_id)s::text[],
              %(event_type)s::text[], %(content_type)s::text[], %(payload)s::bytea[], %(occurred_at)s::timestamptz[],
              %(traceparent)s::text[])
       WITH ORDINALITY AS e (event_id, tenant_id, product, subject_id, event_type, content_type, payload, occurred_at,
                             traceparent, ordinal)
 ORDER BY e.ordinal
RETURNING event_id::text;
