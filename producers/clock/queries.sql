-- name: try_lock
-- One reconciler and one upkeep at a time per database, by session; it goes with the connection.
SELECT pg_try_advisory_lock(hashtext('tellonce'), hashtext(%(task)s))

-- name: unlock
SELECT pg_advisory_unlock(hashtext('tellonce'), hashtext(%(task)s))

-- name: owed_topics
-- Which groups must decide which topics, and from when on.
SELECT group_name, array_agg(topic ORDER BY topic)
FROM platform.group_subscription
GROUP BY group_name
ORDER BY group_name

-- name: undecided
-- Outbox rows that this group must decide and has not, oldest first, at most `limit`: a merge of two indexes on
-- the same key that stops early. `since` prunes the day partitions of both.
SELECT o.event_id::text, o.tenant_id, o.topic, o.position, coalesce(r.resends, 0)
FROM platform.outbox AS o
INNER JOIN platform.group_subscription AS s
    ON s.group_name = %(group)s AND s.topic = o.topic AND s.since <= o.recorded_at
LEFT JOIN platform.resend_count AS r
    ON r.event_id = o.event_id AND r.tenant_id = o.tenant_id AND r.group_name = %(group)s
WHERE
    o.event_id >= platform.id_floor(%(since)s)
    AND o.topic = any(%(topics)s)
    AND NOT EXISTS (
        SELECT FROM platform.decision AS d
        WHERE
            d.event_id = o.event_id
            AND d.tenant_id = o.tenant_id
            AND d.group_name = %(group)s
            AND d.event_id >= platform.id_floor(%(since)s)
    )
ORDER BY o.event_id, o.tenant_id
LIMIT %(limit)s

-- name: still_undecided
-- Which of these rows still lack the group's decision and are still the rows that were noted: one that was sent
-- again meanwhile has another position and another fate.
SELECT c.place
FROM unnest(%(event_ids)s::uuid [], %(tenant_ids)s::text [], %(groups)s::text [], %(positions)s::bigint [])
WITH ORDINALITY AS c (event_id, tenant_id, group_name, position, place)
INNER JOIN platform.outbox AS o
    ON o.event_id = c.event_id AND o.tenant_id = c.tenant_id AND o.position = c.position
WHERE NOT EXISTS (
    SELECT FROM platform.decision AS d
    WHERE d.event_id = c.event_id AND d.tenant_id = c.tenant_id AND d.group_name = c.group_name
)
ORDER BY c.place

-- name: note
-- The position that capture has to pass, taken after the candidates were seen: every commit they came with
-- lies before it. Real time, because what is waited for is real.
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, clock_timestamp()

-- name: slot
SELECT s.confirmed_flush_lsn - '0/0'::pg_lsn, s.wal_status, coalesce(t.total_txns, 0)
FROM pg_replication_slots AS s
LEFT JOIN pg_stat_replication_slots AS t ON t.slot_name = s.slot_name
WHERE s.slot_name = %(slot)s AND s.database = current_database()

-- name: progress
SELECT group_name, topic_id, partition, next_offset
FROM platform.consumer_progress
WHERE group_name = any(%(groups)s) AND topic_id = any(%(topic_ids)s)

-- name: resend
SELECT platform.resend(%(event_ids)s::uuid [], %(tenant_ids)s::text [])

-- name: count_resends
INSERT INTO platform.resend_count (event_id, tenant_id, group_name, resends, last_at)
SELECT c.event_id, c.tenant_id, c.group_name, 1, %(real)s
FROM unnest(%(event_ids)s::uuid [], %(tenant_ids)s::text [], %(groups)s::text [])
AS c (event_id, tenant_id, group_name)
ON CONFLICT (event_id, tenant_id, group_name) DO UPDATE
SET resends = platform.resend_count.resends + 1, last_at = excluded.last_at

-- name: bury
-- A row that never arrived has no place in Kafka: partition -1, and its position stands for the offset.
INSERT INTO platform.dead_letter (
    group_name, topic, topic_id, partition, "offset", tenant_id, event_id, event_type, record_key, body, reason, error, created_at
)
SELECT
    c.group_name, o.topic, 'outbox', -1, o.position, o.tenant_id, o.event_id, o.event_type,
    convert_to(o.message_key, 'UTF8'), o.payload, %(reason)s, %(error)s, %(now)s
FROM unnest(%(event_ids)s::uuid [], %(tenant_ids)s::text [], %(groups)s::text [])
WITH ORDINALITY AS c (event_id, tenant_id, group_name, place)
INNER JOIN platform.outbox AS o ON o.event_id = c.event_id AND o.tenant_id = c.tenant_id
ORDER BY c.place

-- name: decide_dead
INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, reason, decided_at)
SELECT c.event_id, c.tenant_id, c.group_name, 'dead_letter', %(reason)s, %(now)s
FROM unnest(%(event_ids)s::uuid [], %(tenant_ids)s::text [], %(groups)s::text [])
AS c (event_id, tenant_id, group_name)

-- name: forget_healed
-- What was sent again and is decided now needs no count.
DELETE FROM platform.resend_count AS r
USING platform.decision AS d
WHERE d.event_id = r.event_id AND d.tenant_id = r.tenant_id AND d.group_name = r.group_name

-- name: state
SELECT slot_txns, full_owed, answered_at, days_at, full_at
FROM platform.reconciler

-- name: save_state
-- A narrower sweep leaves the times of the wider ones; a round without a full verdict leaves all of them.
UPDATE platform.reconciler
SET
    slot_txns = %(slot_txns)s,
    full_owed = (full_owed OR %(owes_full)s) AND NOT (%(answered)s AND %(sweep)s = 'full'),
    round_at = %(noted_at)s,
    undecided = %(undecided)s,
    lost = lost + %(lost)s,
    unanswered = %(unanswered)s,
    answered_at = CASE WHEN %(answered)s THEN %(noted_at)s ELSE answered_at END,
    days_at = CASE WHEN %(answered)s AND %(sweep)s IN ('days', 'full') THEN %(noted_at)s ELSE days_at END,
    full_at = CASE WHEN %(answered)s AND %(sweep)s = 'full' THEN %(noted_at)s ELSE full_at END

-- name: clock_for_update
SELECT real_at, clock_at, rate, clock_timestamp() FROM platform.clock FOR UPDATE

-- name: set_clock
UPDATE platform.clock SET real_at = %(real_at)s, clock_at = %(clock_at)s, rate = %(rate)s

-- name: incomplete
-- The completeness probe for many subjects at once, each judged by its deciding group. platform.undecided() says the same
-- of one; asked a thousand times it would open every day's partition a thousand times, where this opens each once.
SELECT DISTINCT e.tenant_id, e.product, e.subject_id
FROM (
    SELECT o.event_id, o.tenant_id, o.product, o.subject_id
    FROM platform.outbox AS o
    WHERE o.message_key = any(%(keys)s) AND o.topic = any(%(topics)s) AND o.topic LIKE 'events.%%'
    OFFSET 0
) AS e
WHERE NOT EXISTS (
    SELECT FROM platform.decision AS d
    WHERE d.event_id = e.event_id AND d.tenant_id = e.tenant_id AND d.group_name = %(groups_of)s || e.product
    OFFSET 0
)

-- name: ensure_partitions
-- Real days: event ids carry real time, whatever the Clock shows.
SELECT platform.ensure_partitions((now() AT TIME ZONE 'UTC')::date, %(days)s)

-- name: partition_gaps
SELECT platform.partition_gaps(%(days)s)

-- name: expired_days
SELECT platform.expired_days()

-- name: gather_day
-- What the default partitions caught of a day goes into partitions of its own, for drop_day to drop.
SELECT platform.ensure_partitions(%(day)s, 1)

-- name: drop_day
SELECT platform.drop_day(%(day)s)
