-- What people look at. Every statement only reads, and names the tenant wherever it concerns one.

-- name: nudges
-- By due time; `nudge_history` serves a subject, `nudge_one_live_per_lead` the live ones.
SELECT n.nudge_id::text, n.tenant_id, n.product, n.subject_id, n.kind, n.step, n.state::text, n.due_at, n.reason,
       n.superseded_by::text, n.cancelled_by::text, n.event_id::text, n.created_at, n.updated_at
  FROM platform.nudge AS n
 WHERE (%(states)s::text[] IS NULL OR n.state = ANY (%(states)s::platform.nudge_state[]))
   AND (%(tenant)s::text IS NULL OR n.tenant_id = %(tenant)s)
   AND (%(product)s::text IS NULL OR n.product = %(product)s)
   AND (%(subject)s::text IS NULL OR n.subject_id = %(subject)s)
   AND (%(kind)s::text IS NULL OR n.kind = %(kind)s)
   AND (%(due_before)s::timestamptz IS NULL OR n.due_at < %(due_before)s)
 ORDER BY n.due_at, n.nudge_id
 LIMIT %(limit)s;

-- name: subject_products
-- Which products know this subject of this tenant.
SELECT DISTINCT o.product
  FROM platform.outbox AS o
 WHERE o.message_key = %(tenant)s || ':' || %(subject)s
   AND o.topic LIKE 'events.%%'
   AND o.tenant_id = %(tenant)s
 UNION
SELECT j.product
  FROM platform.journey_progress AS j
 WHERE j.tenant_id = %(tenant)s
   AND j.subject_id = %(subject)s
 UNION
SELECT substr(l.topic, length('events.') + 1)
  FROM platform.dead_letter AS l
 WHERE l.record_key = convert_to(%(tenant)s || ':' || %(subject)s, 'UTF8')
   AND l.topic LIKE 'events.%%'
 ORDER BY 1;

-- name: told
-- A subject's events with what each group decided, by the outbox's position: the order in which they were committed, as
-- long as writers of one subject wait for each other (a position is drawn at the insert, not at the commit). What was
-- sent again stands where it was sent last.
SELECT o.event_id::text, o.event_type, o.occurred_at, o.recorded_at, o.traceparent, d.group_name, d.outcome::text,
       d.reason, d.decided_at, d.nudge_id::text, made.kind, made.due_at, d.cancelled_nudge_id::text, gone.kind,
       gone.reason,
       CASE d.outcome WHEN 'dead_letter' THEN (
         SELECT max(l.dead_letter_id)
           FROM platform.dead_letter AS l
          WHERE l.event_id = d.event_id
            AND l.group_name = d.group_name
       ) END
  FROM platform.outbox AS o
  LEFT JOIN platform.decision AS d
    ON d.event_id = o.event_id
   AND d.tenant_id = o.tenant_id
  LEFT JOIN platform.nudge AS made
    ON made.nudge_id = d.nudge_id
   AND made.tenant_id = d.tenant_id
  LEFT JOIN platform.nudge AS gone
    ON gone.nudge_id = d.cancelled_nudge_id
   AND gone.tenant_id = d.tenant_id
 WHERE o.message_key = %(tenant)s || ':' || %(subject)s
   AND o.topic = 'events.' || %(product)s
   AND o.topic LIKE 'events.%%'
   AND o.tenant_id = %(tenant)s
 ORDER BY o.position, d.group_name;

-- name: undecided_letters
-- Dead letters of a subject for which no decision stands: their record has no row in the outbox, or did not say whose it
-- was. One that was sent again, and is on its way, is told by its row.
SELECT l.dead_letter_id, l.topic_id || '/' || l.partition || '/' || l."offset", l.event_id::text, l.event_type,
       l.group_name, l.reason, l.created_at
  FROM platform.dead_letter AS l
 WHERE l.record_key = convert_to(%(tenant)s || ':' || %(subject)s, 'UTF8')
   AND l.topic = 'events.' || %(product)s
   AND NOT EXISTS (
         SELECT
           FROM platform.decision AS d
          WHERE d.event_id = l.event_id
            AND d.tenant_id = %(tenant)s
            AND d.group_name = l.group_name)
   AND NOT (l.state = 'retried' AND EXISTS (
         SELECT
           FROM platform.outbox AS o
          WHERE o.event_id = l.event_id
            AND o.tenant_id = %(tenant)s))
 ORDER BY l.dead_letter_id;

-- name: journey
SELECT j.reached, j.epoch_began_at, j.ended_at
  FROM platform.journey_progress AS j
 WHERE j.tenant_id = %(tenant)s
   AND j.product = %(product)s
   AND j.subject_id = %(subject)s;

-- name: live_nudges
-- Live nudges by product, and how many of them are due by the platform's clock.
SELECT n.product, count(*), count(*) FILTER (WHERE n.due_at <= platform.clock_now(n.tenant_id))
  FROM platform.nudge AS n
 WHERE n.state IN ('scheduled', 'pending')
 GROUP BY n.product
 ORDER BY n.product;

-- name: open_dead_letters
SELECT d.group_name, d.reason, count(*), min(d.created_at)
  FROM platform.dead_letter AS d
 WHERE d.state = 'open'
 GROUP BY d.group_name, d.reason
 ORDER BY d.group_name, d.reason;

-- name: tenants
SELECT count(*), count(*) FILTER (WHERE t.state = 'suspended'), count(*) FILTER (WHERE t.held_at IS NOT NULL)
  FROM platform.tenant AS t;

-- name: subscriptions
SELECT s.group_name, array_agg(s.topic ORDER BY s.topic)
  FROM platform.group_subscription AS s
 GROUP BY s.group_name
 ORDER BY s.group_name;

-- name: progress
SELECT p.group_name, p.topic_id, p.partition, p.next_offset
  FROM platform.consumer_progress AS p;

-- name: reconciler
SELECT r.round_at, r.answered_at, r.undecided, r.lost, r.unanswered, r.full_owed
  FROM platform.reconciler AS r;
