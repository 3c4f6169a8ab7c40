-- Supersession's state: locks in the house's order, journey before nudge; what cancels and what inserts are
-- two statements, because one statement sees one snapshot and the partial unique index would refuse it.

-- name: lock_leads
SELECT journey.tenant_id, journey.subject_id, journey.reached, journey.epoch_began_at, journey.ended_at
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[]) AS lead (tenant_id, subject_id)
  JOIN platform.journey_progress AS journey
    ON journey.tenant_id = lead.tenant_id
   AND journey.product = %(product)s
   AND journey.subject_id = lead.subject_id
 ORDER BY journey.tenant_id, journey.subject_id
   FOR UPDATE OF journey;

-- name: live_nudges
SELECT nudge.tenant_id, nudge.subject_id, nudge.nudge_id::text
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[]) AS lead (tenant_id, subject_id)
  JOIN platform.nudge AS nudge
    ON nudge.tenant_id = lead.tenant_id
   AND nudge.product = %(product)s
   AND nudge.subject_id = lead.subject_id
   AND nudge.state IN ('scheduled', 'pending');

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
UPDATE platform.journey_progress AS journey
   SET reached = coalesce(string_to_array(nullif(lead.reached, ''), ' '), '{}'),
       epoch_began_at = lead.epoch_began_at,
       ended_at = lead.ended_at,
       updated_at = %(now)s
  FROM unnest(%(tenant_ids)s::text[], %(subject_ids)s::text[], %(reached)s::text[],
              %(epochs)s::timestamptz[], %(ends)s::timestamptz[])
       AS lead (tenant_id, subject_id, reached, epoch_began_at, ended_at)
 WHERE journey.tenant_id = lead.tenant_id
   AND journey.product = %(product)s
   AND journey.subject_id = lead.subject_id;

-- name: cancel_nudges
UPDATE platform.nudge AS nudge
   SET state = 'cancelled',
       superseded_by = gone.superseded_by,
       cancelled_by = gone.cancelled_by,
       reason = gone.reason,
       updated_at = %(now)s
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[], %(superseded_by)s::uuid[],
              %(cancelled_by)s::uuid[], %(reasons)s::text[])
       AS gone (nudge_id, tenant_id, superseded_by, cancelled_by, reason)
 WHERE nudge.nudge_id = gone.nudge_id
   AND nudge.tenant_id = gone.tenant_id
   AND nudge.state IN ('scheduled', 'pending');

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
