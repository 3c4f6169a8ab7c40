-- Claims and records. Why look-ups are LATERAL … OFFSET 0 or scalar: see consumers/runtime/queries.sql. And each is
-- written so that one index can serve it: while a table is empty all indexes cost the same, and a plan made then would
-- read a tenant's whole history for each row (measured: 400 ms instead of 4 per round). Hence `|| ''` behind a column
-- and `::text` behind a state that are to be compared and not searched by.
-- :now is the Clock's time, :real the database's; leases are real time, everything else is the Clock's.

-- name: due
-- What is due on a channel, tenants in turn: of each the first few, so that a backlog of one is never read for another.
-- First those whose lease has run out: their worker is gone.
WITH RECURSIVE waiting (tenant_id) AS (
  (SELECT tenant_id FROM platform.delivery
    WHERE channel = %(channel)s AND state = 'queued'
    ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT later.tenant_id FROM platform.delivery AS later
           WHERE later.channel = %(channel)s AND later.state = 'queued' AND later.tenant_id > waiting.tenant_id
           ORDER BY later.tenant_id LIMIT 1)
    FROM waiting
   WHERE waiting.tenant_id IS NOT NULL
)
(SELECT delivery_id::text, tenant_id, 0::bigint AS turn
   FROM platform.delivery
  WHERE channel = %(channel)s AND state = 'sending' AND lease_until <= %(real)s
  ORDER BY lease_until
  LIMIT %(most)s)
UNION ALL
SELECT first.delivery_id::text, waiting.tenant_id, first.turn
  FROM waiting
 CROSS JOIN LATERAL (
       SELECT queued.delivery_id, row_number() OVER (ORDER BY queued.due_at, queued.seq) AS turn
         FROM platform.delivery AS queued
        WHERE queued.channel = %(channel)s AND queued.state = 'queued'
          AND queued.tenant_id = waiting.tenant_id AND queued.due_at <= %(now)s
        ORDER BY queued.due_at, queued.seq
        LIMIT %(per_tenant)s) AS first
 WHERE waiting.tenant_id IS NOT NULL AND waiting.tenant_id <> ALL (%(full)s::text[])
 ORDER BY turn
 LIMIT %(most)s;

-- name: next_due
-- When something becomes due, and when a lease runs out.
WITH RECURSIVE waiting (tenant_id) AS (
  (SELECT tenant_id FROM platform.delivery
    WHERE channel = %(channel)s AND state = 'queued'
    ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT later.tenant_id FROM platform.delivery AS later
           WHERE later.channel = %(channel)s AND later.state = 'queued' AND later.tenant_id > waiting.tenant_id
           ORDER BY later.tenant_id LIMIT 1)
    FROM waiting
   WHERE waiting.tenant_id IS NOT NULL
)
SELECT (SELECT min(first.due_at)
          FROM waiting
         CROSS JOIN LATERAL (
               SELECT queued.due_at FROM platform.delivery AS queued
                WHERE queued.channel = %(channel)s AND queued.state = 'queued'
                  AND queued.tenant_id = waiting.tenant_id AND queued.due_at > %(now)s
                ORDER BY queued.due_at LIMIT 1) AS first),
       (SELECT min(lease_until) FROM platform.delivery WHERE channel = %(channel)s AND state = 'sending');

-- name: lock
-- Whoever else has one in hand keeps it; it is asked for again when that has not worked out.
SELECT wanted.ordinal, delivery.*
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[]) WITH ORDINALITY
       AS wanted (delivery_id, tenant_id, ordinal)
 CROSS JOIN LATERAL (
       SELECT found.delivery_id::text, found.tenant_id, found.product, found.subject_id, found.kind, found.user_id,
              found.role, found.state::text AS state, found.attempts, found.due_at, found.expires_at, found.lease_until,
              found.notification_id::text, found.nudge_id::text, found.event_id::text, found.lane, found.seq,
              found.first_attempt_at
         FROM platform.delivery AS found
        WHERE found.delivery_id = wanted.delivery_id AND found.tenant_id || '' = wanted.tenant_id
          AND found.channel || '' = %(channel)s
       OFFSET 0
          FOR UPDATE SKIP LOCKED) AS delivery
 WHERE delivery.state IN ('queued', 'sending')
 ORDER BY wanted.ordinal;

-- name: lock_nudges
-- Supersession cancels a nudge before its claim asks what stands, or after the claim has made it sent; between the two it
-- would cancel what is going out.
SELECT nudge.state
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[]) WITH ORDINALITY AS wanted (nudge_id, tenant_id, ordinal)
 CROSS JOIN LATERAL (
       SELECT found.state FROM platform.nudge AS found
        WHERE found.nudge_id = wanted.nudge_id AND found.tenant_id || '' = wanted.tenant_id
       OFFSET 0
          FOR NO KEY UPDATE) AS nudge;

-- name: standing
-- What is true now of what each locked delivery rests on.
SELECT wanted.ordinal,
       (SELECT CASE WHEN nudge.state IN ('scheduled', 'pending') THEN 'live'
                    WHEN nudge.state = 'sent' AND (
                         SELECT journey.ended_at IS NULL AND journey.reached[cardinality(journey.reached)] = nudge.step
                                AND (journey.epoch_began_at IS NULL OR cause.occurred_at >= journey.epoch_began_at)
                           FROM platform.journey_progress AS journey
                          WHERE journey.tenant_id = nudge.tenant_id AND journey.product = nudge.product
                            AND journey.subject_id = nudge.subject_id) THEN 'told'
                    ELSE 'gone' END
          FROM platform.nudge AS nudge
         WHERE nudge.nudge_id = wanted.nudge_id AND nudge.tenant_id || '' = wanted.tenant_id) AS standing,
       wanted.nudge_id IS NULL OR NOT platform.undecided(
         'supersession.' || wanted.product, wanted.tenant_id, wanted.product, wanted.subject_id) AS is_complete,
       (SELECT assigned.user_id FROM platform.assignment AS assigned
         WHERE assigned.tenant_id = wanted.tenant_id AND assigned.product = wanted.product
           AND assigned.subject_id = wanted.subject_id AND assigned.role = wanted.role) AS holder,
       contact.active, contact.first_name, contact.email, contact.phone,
       (SELECT applicant.first_name FROM platform.contact AS applicant
         WHERE applicant.tenant_id = wanted.tenant_id
           AND applicant.user_id = (
               SELECT assigned.user_id FROM platform.assignment AS assigned
                WHERE assigned.tenant_id = wanted.tenant_id AND assigned.product = wanted.product
                  AND assigned.subject_id = wanted.subject_id AND assigned.role = 'applicant')) AS applicant,
       (SELECT advisor.first_name FROM platform.contact AS advisor
         WHERE advisor.tenant_id = wanted.tenant_id
           AND advisor.user_id = (
               SELECT assigned.user_id FROM platform.assignment AS assigned
                WHERE assigned.tenant_id = wanted.tenant_id AND assigned.product = wanted.product
                  AND assigned.subject_id = wanted.subject_id AND assigned.role = 'advisor')) AS advisor,
       (SELECT tenant.name FROM platform.tenant AS tenant WHERE tenant.tenant_id = wanted.tenant_id) AS tenant_name,
       notification.locale, notification.zone,
       frozen.address, frozen.content, frozen.traceparent AS frozen_traceparent,
       cause.content_type, CASE WHEN frozen.address IS NULL THEN cause.payload END AS payload, cause.occurred_at,
       cause.traceparent, cause.event_type,
       EXISTS (SELECT FROM platform.delivery AS earlier
                WHERE earlier.tenant_id = wanted.tenant_id AND earlier.product = wanted.product
                  AND earlier.subject_id = wanted.subject_id AND earlier.seq < wanted.seq
                  AND earlier.user_id = wanted.user_id AND earlier.channel || '' = %(channel)s
                  AND earlier.lane = wanted.lane AND earlier.state::text IN ('queued', 'sending')
                  AND coalesce(earlier.first_attempt_at > %(overtake_before)s, true)) AS is_blocked
  FROM unnest(%(notification_ids)s::uuid[], %(tenant_ids)s::text[], %(delivery_ids)s::uuid[], %(nudge_ids)s::uuid[],
              %(event_ids)s::uuid[], %(products)s::text[], %(subject_ids)s::text[], %(user_ids)s::text[],
              %(roles)s::text[], %(lanes)s::text[], %(seqs)s::bigint[])
       WITH ORDINALITY AS wanted (notification_id, tenant_id, delivery_id, nudge_id, event_id, product, subject_id,
                                  user_id, role, lane, seq, ordinal)
  LEFT JOIN LATERAL (
       SELECT active, first_name, email, phone FROM platform.contact AS person
        WHERE person.tenant_id = wanted.tenant_id AND person.user_id = wanted.user_id OFFSET 0) AS contact ON true
  LEFT JOIN LATERAL (
       SELECT locale, zone FROM platform.notification AS told
        WHERE told.notification_id = wanted.notification_id AND told.tenant_id || '' = wanted.tenant_id OFFSET 0)
       AS notification ON true
  LEFT JOIN LATERAL (
       SELECT address, content, traceparent FROM platform.delivery_body AS body
        WHERE body.delivery_id = wanted.delivery_id AND body.tenant_id = wanted.tenant_id OFFSET 0) AS frozen ON true
  LEFT JOIN LATERAL (
       SELECT content_type, payload, occurred_at, traceparent, event_type FROM platform.outbox AS fact
        WHERE fact.event_id = wanted.event_id AND fact.tenant_id = wanted.tenant_id OFFSET 0) AS cause ON true
 ORDER BY wanted.ordinal;

-- name: freeze
INSERT INTO platform.delivery_body (delivery_id, tenant_id, address, content, traceparent, frozen_at)
SELECT frozen.delivery_id, frozen.tenant_id, frozen.address, frozen.content, frozen.traceparent, %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(addresses)s::text[], %(contents)s::jsonb[],
              %(traceparents)s::text[]) AS frozen (delivery_id, tenant_id, address, content, traceparent);

-- name: lease
UPDATE platform.delivery AS delivery
   SET state = 'sending', lease_until = %(lease_until)s, attempt_token = leased.token, attempts = delivery.attempts + 1,
       account = leased.account,
       first_attempt_at = coalesce(delivery.first_attempt_at, %(now)s), claimed_at = %(now)s, reason = NULL, error = NULL,
       updated_at = %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(tokens)s::uuid[], %(accounts)s::text[])
       AS leased (delivery_id, tenant_id, token, account)
 CROSS JOIN LATERAL (
       SELECT found.ctid AS address FROM platform.delivery AS found
        WHERE found.delivery_id = leased.delivery_id AND found.tenant_id || '' = leased.tenant_id OFFSET 0) AS place
 WHERE delivery.ctid = place.address;

-- name: hand_over
-- What these deliveries no longer tell, for whoever has the role now and is reached by the channel. As often as the role
-- comes back to somebody they have a delivery that was suppressed for having lost it; any other means they are told.
WITH heir AS (
  SELECT wanted.*, person.locale, person.zone, prior.product, prior.subject_id, prior.kind, prior.role, prior.lane,
         prior.nudge_id, prior.event_id, prior.expires_at, told.intent_id, known.reason IS NOT NULL AS is_again
    FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(user_ids)s::text[], %(notification_ids)s::uuid[],
                %(first_ids)s::uuid[], %(again_ids)s::uuid[])
         WITH ORDINALITY AS wanted (prior_id, tenant_id, user_id, notification_id, first_id, again_id, ordinal)
   CROSS JOIN LATERAL (
         SELECT locale, zone FROM platform.contact AS found
          WHERE found.tenant_id = wanted.tenant_id AND found.user_id = wanted.user_id AND found.active
            AND CASE %(channel)s WHEN 'inapp' THEN true WHEN 'email' THEN found.email IS NOT NULL
                                 ELSE found.phone IS NOT NULL END
         OFFSET 0) AS person
   CROSS JOIN LATERAL (
         SELECT product, subject_id, kind, role, lane, nudge_id, event_id, expires_at, notification_id AS told_id
           FROM platform.delivery AS found
          WHERE found.delivery_id = wanted.prior_id AND found.tenant_id || '' = wanted.tenant_id OFFSET 0) AS prior
   CROSS JOIN LATERAL (
         SELECT intent_id FROM platform.notification AS found
          WHERE found.notification_id = prior.told_id AND found.tenant_id || '' = wanted.tenant_id OFFSET 0) AS told
    LEFT JOIN LATERAL (
         SELECT coalesce(reason, state::text) AS reason FROM platform.delivery AS found
          WHERE found.delivery_id = wanted.first_id AND found.tenant_id || '' = wanted.tenant_id OFFSET 0) AS known ON true
   WHERE known.reason IS NULL OR known.reason LIKE 'no\_longer\_%%'
), notified AS (
  INSERT INTO platform.notification
         (notification_id, tenant_id, product, subject_id, kind, intent_id, event_id, nudge_id, user_id, role, locale, zone,
          created_at)
  SELECT notification_id, tenant_id, product, subject_id, kind, intent_id, event_id, nudge_id, user_id, role, locale, zone,
         %(now)s
    FROM heir ORDER BY ordinal
      ON CONFLICT DO NOTHING
)
INSERT INTO platform.delivery
       (delivery_id, tenant_id, notification_id, product, subject_id, kind, user_id, role, channel, account, lane,
        nudge_id, event_id, due_at, expires_at, created_at, updated_at)
SELECT CASE WHEN is_again THEN again_id ELSE first_id END, tenant_id, notification_id, product, subject_id, kind, user_id,
       role, %(channel)s, %(channel)s, lane, nudge_id, event_id, %(now)s, expires_at, %(now)s, %(now)s
  FROM heir ORDER BY ordinal
    ON CONFLICT DO NOTHING;

-- name: resolve
-- The end of a delivery, or a pause, by the claim or by an answer.
UPDATE platform.delivery AS delivery
   SET state = resolved.state, reason = resolved.reason, due_at = coalesce(resolved.due_at, delivery.due_at),
       provider_ref = coalesce(resolved.provider_ref, delivery.provider_ref), error = resolved.error,
       lease_until = NULL, attempt_token = NULL, updated_at = %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(states)s::platform.delivery_state[],
              %(reasons)s::text[], %(due)s::timestamptz[], %(provider_refs)s::text[], %(errors)s::text[])
       AS resolved (delivery_id, tenant_id, state, reason, due_at, provider_ref, error)
 CROSS JOIN LATERAL (
       SELECT found.ctid AS address FROM platform.delivery AS found
        WHERE found.delivery_id = resolved.delivery_id AND found.tenant_id || '' = resolved.tenant_id OFFSET 0) AS place
 WHERE delivery.ctid = place.address;

-- name: hold
-- One whose claim or record fails alone. An attempt under way is its worker's, who names its token.
UPDATE platform.delivery
   SET state = 'held', reason = %(reason)s, error = %(error)s, lease_until = NULL, attempt_token = NULL,
       updated_at = %(now)s
 WHERE delivery_id = %(delivery_id)s::uuid AND tenant_id = %(tenant_id)s
   AND (state = 'queued' AND %(token)s::uuid IS NULL
        OR state = 'sending' AND (attempt_token = %(token)s::uuid OR %(token)s::uuid IS NULL AND lease_until <= %(real)s))
RETURNING true;

-- name: lock_attempts
-- Those whose attempt is still the present one, and those that were accepted, whatever became of the lease.
SELECT answered.ordinal, delivery.*
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(tokens)s::uuid[], %(accepted)s::boolean[])
       WITH ORDINALITY AS answered (delivery_id, tenant_id, token, accepted, ordinal)
 CROSS JOIN LATERAL (
       SELECT found.attempts, found.first_attempt_at
         FROM platform.delivery AS found
        WHERE found.delivery_id = answered.delivery_id AND found.tenant_id || '' = answered.tenant_id
          AND (found.attempt_token = answered.token
               OR answered.accepted AND found.state::text IN ('queued', 'sending', 'held'))
       OFFSET 0
          FOR UPDATE) AS delivery
 ORDER BY answered.ordinal;

-- name: log_attempts
-- Every attempt is logged, a late one too; the same answer recorded again is the same line.
INSERT INTO platform.delivery_attempt
       (delivery_id, tenant_id, attempt, token, began_at, ended_at, outcome, status, provider_ref, error, latency_ms)
SELECT made.delivery_id, made.tenant_id, made.attempt, made.token, made.began_at, made.ended_at, made.outcome,
       made.status, made.provider_ref, made.error, made.latency_ms
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(attempts)s::int[], %(tokens)s::uuid[],
              %(began)s::timestamptz[], %(ended)s::timestamptz[], %(outcomes)s::text[], %(statuses)s::int[],
              %(provider_refs)s::text[], %(errors)s::text[], %(latencies)s::int[])
       AS made (delivery_id, tenant_id, attempt, token, began_at, ended_at, outcome, status, provider_ref, error, latency_ms)
    ON CONFLICT DO NOTHING;

-- name: nudges_sent
-- The first delivery that goes out makes the nudge sent.
UPDATE platform.nudge AS nudge
   SET state = 'sent', updated_at = %(now)s
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[]) AS told (nudge_id, tenant_id)
 CROSS JOIN LATERAL (
       SELECT found.ctid AS address FROM platform.nudge AS found
        WHERE found.nudge_id = told.nudge_id AND found.tenant_id || '' = told.tenant_id
          AND found.state::text = 'pending'
       OFFSET 0) AS place
 WHERE nudge.ctid = place.address;

-- name: nudges_untold
-- A nudge of which no delivery is left that could go out, and none did, has told nobody.
UPDATE platform.nudge AS nudge
   SET state = 'cancelled', reason = 'suppressed', updated_at = %(now)s
  FROM unnest(%(nudge_ids)s::uuid[], %(tenant_ids)s::text[]) AS untold (nudge_id, tenant_id)
 CROSS JOIN LATERAL (
       SELECT found.ctid AS address FROM platform.nudge AS found
        WHERE found.nudge_id = untold.nudge_id AND found.tenant_id || '' = untold.tenant_id
          AND found.state::text = 'pending'
          AND NOT EXISTS (
              SELECT FROM platform.delivery AS other
               WHERE other.nudge_id = found.nudge_id AND other.tenant_id || '' = found.tenant_id
                 AND other.state::text IN ('queued', 'sending', 'sent', 'held'))
       OFFSET 0) AS place
 WHERE nudge.ctid = place.address;

-- name: wake_successors
-- Those that waited for one which is out of the way now.
UPDATE platform.delivery AS delivery
   SET due_at = %(now)s, reason = NULL, updated_at = %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[]) AS gone (delivery_id, tenant_id)
 CROSS JOIN LATERAL (
       SELECT later.ctid AS address
         FROM (SELECT * FROM platform.delivery AS found
                WHERE found.delivery_id = gone.delivery_id AND found.tenant_id || '' = gone.tenant_id OFFSET 0) AS resolved
        CROSS JOIN LATERAL (
              SELECT waiting.ctid
                FROM platform.delivery AS waiting
               WHERE waiting.tenant_id = resolved.tenant_id AND waiting.product = resolved.product
                 AND waiting.subject_id = resolved.subject_id AND waiting.seq > resolved.seq
                 AND waiting.user_id = resolved.user_id AND waiting.channel || '' = resolved.channel
                 AND waiting.lane = resolved.lane AND waiting.state::text = 'queued' AND waiting.reason = 'in_order'
               ORDER BY waiting.seq
               LIMIT 1) AS later
       OFFSET 0) AS place
 WHERE delivery.ctid = place.address;

-- name: show_inapp
INSERT INTO platform.inapp_message (delivery_id, tenant_id, user_id, content, created_at)
SELECT shown.delivery_id, shown.tenant_id, shown.user_id, shown.content, %(now)s
  FROM unnest(%(delivery_ids)s::uuid[], %(tenant_ids)s::text[], %(user_ids)s::text[], %(contents)s::jsonb[])
       AS shown (delivery_id, tenant_id, user_id, content);
