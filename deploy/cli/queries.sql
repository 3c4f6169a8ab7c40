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
-- A subject's events, and what the clock said of its nudges, with what each group decided; by the outbox's position: the
-- order in which they were committed, as long as writers of one subject wait for each other (a position is drawn at the
-- insert, not at the commit). What was sent again stands where it was sent last. No index serves a subject's timers: their
-- ids follow from its nudges.
WITH record AS (
  SELECT e.event_id, e.tenant_id, e.event_type, e.occurred_at, e.recorded_at, e.traceparent, e.position
    FROM platform.outbox AS e
   WHERE e.message_key = %(tenant)s || ':' || %(subject)s
     AND e.topic = 'events.' || %(product)s
     AND e.topic LIKE 'events.%%'
     AND e.tenant_id = %(tenant)s
   UNION ALL
  SELECT t.event_id, t.tenant_id, t.event_type, t.occurred_at, t.recorded_at, t.traceparent, t.position
    FROM platform.outbox AS t
   WHERE t.event_id = ANY (%(timer_ids)s::uuid[])
     AND t.topic = 'timers.' || %(product)s
     AND t.tenant_id = %(tenant)s
)
SELECT r.event_id::text, r.event_type, r.occurred_at, r.recorded_at, r.traceparent, d.group_name, d.outcome::text,
       d.reason, d.decided_at, d.nudge_id::text, made.kind, made.due_at, d.cancelled_nudge_id::text, gone.kind,
       gone.reason,
       CASE d.outcome WHEN 'dead_letter' THEN (
         SELECT max(l.dead_letter_id)
           FROM platform.dead_letter AS l
          WHERE l.event_id = d.event_id
            AND l.group_name = d.group_name
       ) END
  FROM record AS r
  LEFT JOIN platform.decision AS d
    ON d.event_id = r.event_id
   AND d.tenant_id = r.tenant_id
  LEFT JOIN platform.nudge AS made
    ON made.nudge_id = d.nudge_id
   AND made.tenant_id = d.tenant_id
  LEFT JOIN platform.nudge AS gone
    ON gone.nudge_id = d.cancelled_nudge_id
   AND gone.tenant_id = d.tenant_id
 ORDER BY r.position, d.group_name;

-- name: undecided_letters
-- Dead letters of a subject for which no decision stands: their record has no row in the outbox, or did not say whose it
-- was. One that was sent again, and is on its way, is told by its row.
SELECT l.dead_letter_id, l.topic_id || '/' || l.partition || '/' || l."offset", l.event_id::text, l.event_type,
       l.group_name, l.reason, l.created_at
  FROM platform.dead_letter AS l
 WHERE l.record_key = convert_to(%(tenant)s || ':' || %(subject)s, 'UTF8')
   AND l.topic IN ('events.' || %(product)s, 'timers.' || %(product)s)
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

-- name: deliveries
-- The latest first: an id begins with its cause's time. A recipient that is an address is kept back. `delivery_history`
-- serves a subject, the primary key one id and the latest of all.
SELECT d.delivery_id::text, d.tenant_id, d.product, d.subject_id, d.kind,
       CASE WHEN d.role <> 'address' THEN d.user_id END AS user_id, d.role, d.channel, d.account, d.state::text, d.reason,
       d.due_at, d.expires_at, d.lease_until, d.attempts, d.first_attempt_at, d.provider_ref, d.notification_id::text,
       d.nudge_id::text, d.event_id::text, d.lane, d.seq, d.created_at, d.updated_at, d.error
  FROM platform.delivery AS d
 WHERE (%(delivery_id)s::uuid IS NULL OR d.delivery_id = %(delivery_id)s)
   AND (%(states)s::text[] IS NULL OR d.state = ANY (%(states)s::platform.delivery_state[]))
   AND (%(tenant)s::text IS NULL OR d.tenant_id = %(tenant)s)
   AND (%(product)s::text IS NULL OR d.product = %(product)s)
   AND (%(subject)s::text IS NULL OR d.subject_id = %(subject)s)
   AND (%(channel)s::text IS NULL OR d.channel = %(channel)s)
   AND (%(kind)s::text IS NULL OR d.kind = %(kind)s)
 ORDER BY d.delivery_id DESC, d.tenant_id
 LIMIT %(limit)s;

-- name: body
SELECT b.address, b.content, b.frozen_at
  FROM platform.delivery_body AS b
 WHERE b.delivery_id = %(delivery_id)s::uuid
   AND b.tenant_id = %(tenant)s;

-- name: attempts
SELECT a.delivery_id::text, a.attempt, a.began_at, a.ended_at, a.outcome, a.status, a.provider_ref, a.error, a.latency_ms
  FROM platform.delivery_attempt AS a
 WHERE a.delivery_id = ANY (%(delivery_ids)s::uuid[])
 ORDER BY a.delivery_id, a.attempt;

-- name: notices
-- Who should know because of a subject's events, by the event; `notification_history` serves it.
SELECT n.notification_id::text, n.event_id::text, n.nudge_id::text, n.kind,
       CASE WHEN n.role <> 'address' THEN n.user_id END AS user_id, n.role, n.locale, n.zone, n.created_at
  FROM platform.notification AS n
 WHERE n.tenant_id = %(tenant)s
   AND n.product = %(product)s
   AND n.subject_id = %(subject)s
 ORDER BY n.event_id, n.kind, n.notification_id;

-- name: nudges_of_subject
-- Each with its cause: what the clock says of it has an id that follows from the two.
SELECT n.nudge_id::text, n.event_id::text
  FROM platform.nudge AS n
 WHERE n.tenant_id = %(tenant)s
   AND n.product = %(product)s
   AND n.subject_id = %(subject)s;

-- name: delivery_counts
-- By channel and state; of those queued, how many are due by the platform's clock, the first of them, and how many wait
-- for what only a person can mend.
SELECT d.channel, d.state::text, count(*), count(*) FILTER (WHERE d.state = 'queued' AND d.due_at <= clock.now),
       min(d.due_at) FILTER (WHERE d.state = 'queued' AND d.due_at <= clock.now),
       count(*) FILTER (WHERE d.state = 'queued' AND d.reason = 'no_account'),
       count(*) FILTER (WHERE d.state = 'queued' AND d.reason = 'template_failed')
  FROM platform.delivery AS d
 CROSS JOIN (SELECT platform.clock_now() AS now) AS clock
 GROUP BY d.channel, d.state
 ORDER BY d.channel, d.state;
