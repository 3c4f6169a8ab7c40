-- Firing due nudges. Every statement is planned when it is sent (the connection prepares nothing), so no plan made while
-- tables were empty outlives that; look-ups are LATERAL … OFFSET 0 or scalar subqueries all the same: one index descent each.
-- Tenants that are suspended or held are not among those looked at: their nudges cost nothing, however many are due.

-- name: lock_waiting
-- Those whose past was not complete and whose retry has come. One that is due no more (time was moved back) comes too: it
-- waits for nothing but its time.
SELECT nudge.address::text, nudge.nudge_id::text, nudge.tenant_id, nudge.product, nudge.subject_id, nudge.event_id::text, nudge.due_at
  FROM (SELECT t.tenant_id
          FROM platform.tenant AS t
         WHERE t.state = 'active' AND t.held_at IS NULL
         ORDER BY t.tenant_id <= %(after)s, t.tenant_id
        OFFSET 0) AS running
 CROSS JOIN LATERAL (
       SELECT n.ctid AS address, n.*
         FROM platform.nudge AS n
        WHERE n.tenant_id = running.tenant_id
          AND n.state = 'scheduled'
          AND n.retry_at IS NOT NULL
          AND n.retry_at <= %(real)s
        ORDER BY n.retry_at
        LIMIT %(share)s
          FOR UPDATE SKIP LOCKED) AS nudge
 LIMIT %(limit)s;

-- name: lock_due
-- Round-robin: tenants after the one that was served last come first, each with a share, oldest first within one. What
-- another clock or supersession has locked is passed over.
SELECT nudge.address::text, nudge.nudge_id::text, nudge.tenant_id, nudge.product, nudge.subject_id, nudge.event_id::text, nudge.due_at
  FROM (SELECT t.tenant_id
          FROM platform.tenant AS t
         WHERE t.state = 'active' AND t.held_at IS NULL
         ORDER BY t.tenant_id <= %(after)s, t.tenant_id
        OFFSET 0) AS running
 CROSS JOIN LATERAL (
       SELECT n.ctid AS address, n.*
         FROM platform.nudge AS n
        WHERE n.tenant_id = running.tenant_id
          AND n.state = 'scheduled'
          AND n.retry_at IS NULL
          AND n.due_at <= %(now)s
        ORDER BY n.due_at
        LIMIT %(share)s
          FOR UPDATE SKIP LOCKED) AS nudge
 LIMIT %(limit)s;

-- name: no_scans
-- A day's partition is new every midnight: nobody has counted it yet, and the planner would read all of it.
SET LOCAL enable_seqscan = off;

-- name: fire
-- By row address, as all changes here: what this transaction has locked does not move.
UPDATE platform.nudge AS nudge
   SET state = 'pending', updated_at = %(now)s
 WHERE nudge.ctid = ANY(%(addresses)s::tid[])
   AND nudge.state = 'scheduled';

-- name: announce
-- In the order they fell due; a trace that began with the cause goes on here.
INSERT INTO platform.outbox
       (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, occurred_at, traceparent)
SELECT told.event_id, told.tenant_id, told.product, told.subject_id, told.subject_id, told.topic, %(event_type)s,
       'application/json', told.payload, told.due_at,
       (SELECT cause.traceparent
          FROM platform.outbox AS cause
         WHERE cause.event_id = told.cause_id AND cause.tenant_id = told.tenant_id)
  FROM unnest(%(event_ids)s::uuid[], %(tenant_ids)s::text[], %(products)s::text[], %(subject_ids)s::text[],
              %(topics)s::text[], %(payloads)s::bytea[], %(due)s::timestamptz[], %(cause_ids)s::uuid[])
       WITH ORDINALITY
       AS told (event_id, tenant_id, product, subject_id, topic, payload, due_at, cause_id, ordinal)
 ORDER BY told.ordinal;

-- name: traces
-- Of these causes, in their order; asked only where spans are recorded.
SELECT (SELECT cause.traceparent
          FROM platform.outbox AS cause
         WHERE cause.event_id = told.cause_id AND cause.tenant_id = told.tenant_id)
  FROM unnest(%(cause_ids)s::uuid[], %(tenant_ids)s::text[])
       WITH ORDINALITY
       AS told (cause_id, tenant_id, ordinal)
 ORDER BY told.ordinal;

-- name: let_wait
-- As long again as it has waited so far, between the bounds: what completes soon is seen soon, what does not costs little.
UPDATE platform.nudge AS nudge
   SET waits_since = coalesce(nudge.waits_since, %(real)s),
       retry_at = %(real)s::timestamptz
                  + least(%(longest)s, greatest(%(shortest)s, %(real)s - coalesce(nudge.waits_since, %(real)s)))
 WHERE nudge.ctid = ANY(%(addresses)s::tid[])
   AND nudge.state = 'scheduled';

-- name: put_back
-- Due no more: an ordinary timer again.
UPDATE platform.nudge AS nudge
   SET waits_since = NULL, retry_at = NULL
 WHERE nudge.ctid = ANY(%(addresses)s::tid[])
   AND nudge.state = 'scheduled';

-- name: outlook
-- What comes next over all running tenants: the earliest due time (by the Clock) and the earliest retry (real).
SELECT min(ahead.due_at), min(ahead.retry_at)
  FROM (SELECT t.tenant_id
          FROM platform.tenant AS t
         WHERE t.state = 'active' AND t.held_at IS NULL
        OFFSET 0) AS running
 CROSS JOIN LATERAL (
       SELECT (SELECT n.due_at
                 FROM platform.nudge AS n
                WHERE n.tenant_id = running.tenant_id AND n.state = 'scheduled' AND n.retry_at IS NULL
                ORDER BY n.due_at
                LIMIT 1) AS due_at,
              (SELECT n.retry_at
                 FROM platform.nudge AS n
                WHERE n.tenant_id = running.tenant_id AND n.state = 'scheduled' AND n.retry_at IS NOT NULL
                ORDER BY n.retry_at
                LIMIT 1) AS retry_at
       OFFSET 0) AS ahead;

-- name: waiting
-- How many wait for their past, at most `most`, and since when the longest of these does.
SELECT count(*), min(held_back.waits_since), clock_timestamp()
  FROM (SELECT n.waits_since
          FROM platform.nudge AS n
         WHERE n.state = 'scheduled'
           AND n.retry_at IS NOT NULL
           AND EXISTS (
             SELECT FROM platform.tenant AS t
              WHERE t.tenant_id = n.tenant_id AND t.state = 'active' AND t.held_at IS NULL)
         LIMIT %(most)s) AS held_back;

-- name: listen
LISTEN tellonce_due;
