-- The runtime's own statements. Every one takes a whole batch; none is ever sent per record.
--
-- A look-up that a batch makes in a table that grows is a scalar subquery or LATERAL … OFFSET 0, never a plain join.
-- A plan outlives the moment it was made in: while a table is empty, which a day's partition is every midnight, the
-- planner rightly prefers to read it whole once per batch, and keeps doing so when it holds millions (measured: 4 s
-- instead of 20 ms per 2,000 records after 12,000). Written this way there is nothing to prefer: one index descent each.

-- name: claim_progress
-- A progress row exists from assignment on, so that the fence always has something to lock.
INSERT INTO platform.consumer_progress (group_name, topic_id, partition, topic, next_offset, updated_at)
SELECT %(group)s, place.topic_id, place.partition, place.topic, place.next_offset, %(now)s
  FROM unnest(%(topic_ids)s::text[], %(partitions)s::int[], %(topics)s::text[], %(next_offsets)s::bigint[])
       AS place (topic_id, partition, topic, next_offset)
 ORDER BY place.topic_id, place.partition
    ON CONFLICT (group_name, topic_id, partition) DO NOTHING;

-- name: read_progress
SELECT progress.topic_id, progress.partition, progress.next_offset
  FROM unnest(%(topic_ids)s::text[], %(partitions)s::int[]) AS place (topic_id, partition)
  JOIN platform.consumer_progress AS progress
    ON progress.group_name = %(group)s
   AND progress.topic_id = place.topic_id
   AND progress.partition = place.partition;

-- name: rewind_progress
-- Only ever back to what Kafka still holds; the anti-join skips what was decided before.
UPDATE platform.consumer_progress AS progress
   SET next_offset = %(next_offset)s, updated_at = %(now)s
 WHERE progress.group_name = %(group)s
   AND progress.topic_id = %(topic_id)s
   AND progress.partition = %(partition)s;

-- name: subscribe
INSERT INTO platform.group_subscription (group_name, topic, since)
SELECT %(group)s, topic, %(now)s
  FROM unnest(%(topics)s::text[]) AS topic
 ORDER BY topic
    ON CONFLICT (group_name, topic) DO NOTHING;

-- name: installation
SELECT horizon, payload_limit FROM platform.installation;

-- name: lock_progress
SELECT progress.topic_id, progress.partition, progress.next_offset
  FROM unnest(%(topic_ids)s::text[], %(partitions)s::int[]) AS place (topic_id, partition)
  JOIN platform.consumer_progress AS progress
    ON progress.group_name = %(group)s
   AND progress.topic_id = place.topic_id
   AND progress.partition = place.partition
 ORDER BY progress.topic_id, progress.partition
   FOR UPDATE OF progress;

-- name: probe
-- Visibility and the decision anti-join in one pass; only the exceptions come back. Logical decoding can
-- show a commit before this session sees it, so a row that is not visible is not yet a fact.
SELECT record.ordinal, found.visible IS NOT NULL AS visible, found.decided IS NOT NULL AS decided
  FROM unnest(%(event_ids)s::uuid[], %(tenant_ids)s::text[])
       WITH ORDINALITY AS record (event_id, tenant_id, ordinal)
 CROSS JOIN LATERAL (
       SELECT (SELECT true FROM platform.outbox AS fact
                WHERE fact.event_id = record.event_id AND fact.tenant_id = record.tenant_id) AS visible,
              (SELECT true FROM platform.decision AS decided
                WHERE decided.event_id = record.event_id
                  AND decided.tenant_id = record.tenant_id
                  AND decided.group_name = %(group)s) AS decided
       OFFSET 0) AS found
 WHERE found.visible IS NULL
    OR found.decided IS NOT NULL;

-- name: insert_decisions
INSERT INTO platform.decision
       (event_id, tenant_id, group_name, outcome, reason, nudge_id, cancelled_nudge_id, decided_at)
SELECT row.event_id, row.tenant_id, %(group)s, row.outcome, row.reason, row.nudge_id, row.cancelled_nudge_id, %(now)s
  FROM unnest(%(event_ids)s::uuid[], %(tenant_ids)s::text[], %(outcomes)s::platform.decision_outcome[],
              %(reasons)s::text[], %(nudge_ids)s::uuid[], %(cancelled_nudge_ids)s::uuid[])
       AS row (event_id, tenant_id, outcome, reason, nudge_id, cancelled_nudge_id);

-- name: insert_dead_letters
-- The same record read again (a rewind, a restored database) is the same dead letter.
INSERT INTO platform.dead_letter
       (group_name, topic, topic_id, partition, "offset", tenant_id, event_id, event_type, record_key, headers, body,
        reason, error, created_at)
SELECT %(group)s, row.topic, row.topic_id, row.partition, row.record_offset, row.tenant_id, row.event_id,
       row.event_type, row.record_key, row.headers, row.body, row.reason, row.error, %(now)s
  FROM unnest(%(topics)s::text[], %(topic_ids)s::text[], %(partitions)s::int[], %(offsets)s::bigint[],
              %(tenant_ids)s::text[], %(event_ids)s::uuid[], %(event_types)s::text[], %(keys)s::bytea[],
              %(headers)s::jsonb[], %(bodies)s::bytea[], %(reasons)s::text[], %(errors)s::text[])
       AS row (topic, topic_id, partition, record_offset, tenant_id, event_id, event_type, record_key, headers, body,
               reason, error)
    ON CONFLICT (group_name, topic_id, partition, "offset") DO NOTHING;

-- name: advance_progress
UPDATE platform.consumer_progress AS progress
   SET next_offset = place.next_offset, updated_at = %(now)s
  FROM unnest(%(topic_ids)s::text[], %(partitions)s::int[], %(next_offsets)s::bigint[])
       AS place (topic_id, partition, next_offset)
 WHERE progress.group_name = %(group)s
   AND progress.topic_id = place.topic_id
   AND progress.partition = place.partition;
