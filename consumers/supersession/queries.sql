-- Supersession's state: locks in the house's order, journey before nudge; what cancels and what inserts are
-- two statements, because one statement sees one snapshot and the partial unique index would refuse it.

-- Why look-ups are LATERAL … OFFSET 0: see consumers/runtime/queries.sql.

-- name: lock_leads
SELECT lead.tenant_id, lead.subject_id, journey.reached, journey.epoch_began_at, journey.ended_at
  FROM (SELECT tenant_id, subject_id
          FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[]) AS wanted (tenant_id, subject_id)
         ORDER BY tenant_id, subject_id) AS lead
 CROSS JOIN LATERAL (
       SELECT reached, epoch_began_at, ended_at
         FROM platform.journey_progress
        WHERE tenant_id = lead.tenant_id AND product = %(product)s AND subject_id = lead.subject_id
       OFFSET 0
          FOR UPDATE) AS journey;

-- name: live_nudges
SELECT lead.tenant_id, lead.subject_id, live.nudge_id::text, live.kind, live.event_id::text, live.due_at, live.is_pending
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[]) AS lead (tenant_id, subject_id)
 CROSS JOIN LATERAL (
       SELECT nudge_id, kind, event_id, due_at, state = 'pending' AS is_pending
         FROM platform.nudge
        WHERE tenant_id = lead.tenant_id AND product = %(product)s AND subject_id = lead.subject_id
          AND state IN ('scheduled', 'pending')
       OFFSET 0) AS live;

-- name: causes
-- The events that armed nudges, for audiences that are named in them.
SELECT wanted.event_id::text, fact.event_type, fact.content_type, fact.payload
  FROM unnest(%(event_ids)s::uuid[], %(tenant_ids)s::text[]) AS wanted (event_id, tenant_id)
 CROSS JOIN LATERAL (
       SELECT event_type, content_type, payload
         FROM platform.outbox
        WHERE event_id = wanted.event_id AND tenant_id = wanted.tenant_id
       OFFSET 0) AS fact;

-- name: insert_leads
-- A lead that appeared meanwhile makes this fall short of its row count: the batch is decided again.
INSERT INTO platform.journey_progress
       (tenant_id, product, subject_id, reached, epoch_began_at, ended_at, updated_at)
SELECT lead.tenant_id, %(product)s, lead.subject_id,
       coalesce(string_to_array(nullif(lead.reached, ''), ' '), '{}'),
       lead.epoch_began_at, lead.ended_at, %(now)s
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[], %(reached)s::text[],
              %(epochs)s::timestamptz[], %(ends)s::timestamptz[])
       AS lead (tenant_id, subject_id, reached, epoch_began_at, ended_at)
 ORDER BY lead.tenant_id, lead.subject_id
    ON CONFLICT (tenant_id, product, subject_id) DO NOTHING;

-- name: update_leads
-- An upsert although each is there, locked: it finds its row by the key, whatever the planner thinks of the table.
INSERT INTO platform.journey_progress AS journey
       (tenant_id, product, subject_id, reached, epoch_began_at, ended_at, updated_at)
SELECT lead.tenant_id, %(product)s, lead.subject_id,
       coalesce(string_to_array(nullif(lead.reached, ''), ' '), '{}'),
       lead.epoch_began_at, lead.ended_at, %(now)s
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[], %(reached)s::text[],
              %(epochs)s::timestamptz[], %(ends)s::timestamptz[])
       AS lead (tenant_id, subject_id, reached, epoch_began_at, ended_at)
    ON CONFLICT (tenant_id, product, subject_id) DO UPDATE
   SET reached = excluded.reached,
       epoch_began_at = excluded.epoch_began_at,
       ended_at = excluded.ended_at,
       updated_at = excluded.updated_at;

-- name: cancel_nudges
-- By row address, looked up by keys that name one row in every index there is. One that another transaction touched in between has moved, so the count
-- falls short and the batch is decided again.
UPDATE platform.nudge AS nudge
   SET state = 'cancelled',
       superseded_by = gone.superseded_by,
       cancelled_by = gone.cancelled_by,
       reason = gone.reason,
       updated_at = %(now)s
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[], %(subject_ids)s::text[],
              %(superseded_by)s::uuid[], %(cancelled_by)s::uuid[], %(reasons)s::text[])
       AS gone (nudge_id, tenant_id, subject_id, superseded_by, cancelled_by, reason)
 CROSS JOIN LATERAL (
       SELECT live.ctid AS address
         FROM platform.nudge AS live
        WHERE live.nudge_id = gone.nudge_id
          AND live.tenant_id = gone.tenant_id
          AND live.product = %(product)s
          AND live.subject_id = gone.subject_id
          AND live.state IN ('scheduled', 'pending')
       OFFSET 0) AS found
 WHERE nudge.ctid = found.address;

-- name: insert_nudges
INSERT INTO platform.nudge
       (nudge_id, tenant_id, product, subject_id, kind, step, event_id, state, due_at,
        superseded_by, cancelled_by, reason, created_at, updated_at)
SELECT born.nudge_id, born.tenant_id, %(product)s, born.subject_id, born.kind, born.step, born.event_id, born.state,
       born.due_at, born.superseded_by, born.cancelled_by, born.reason, %(now)s, %(now)s
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[], %(subject_ids)s::text[], %(kinds)s::text[],
              %(steps)s::text[], %(event_ids)s::uuid[], %(states)s::platform.nudge_state[],
              %(due)s::timestamptz[], %(superseded_by)s::uuid[], %(cancelled_by)s::uuid[], %(reasons)s::text[])
       WITH ORDINALITY
       AS born (nudge_id, tenant_id, subject_id, kind, step, event_id, state, due_at, superseded_by, cancelled_by,
                reason, ordinal)
 ORDER BY born.ordinal;
