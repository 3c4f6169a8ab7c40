-- What the demo looks at; it only reads, but for the resend, which is the platform's own function.

-- name: undecided
-- By the groups that read its topic, whether or not they have begun to.
SELECT count(*)
FROM platform.outbox AS fact
INNER JOIN
    unnest(%(reader_groups)s::text [], %(reader_topics)s::text []) AS owed (group_name, topic)
    ON owed.topic = fact.topic
WHERE
    fact.tenant_id = ANY(%(tenants)s)
    AND NOT EXISTS (
        SELECT FROM platform.decision AS decided
        WHERE
            decided.event_id = fact.event_id AND decided.tenant_id = fact.tenant_id
            AND decided.group_name = owed.group_name
    )

-- name: unsent
-- Deliveries of which something will still come.
SELECT count(*)
FROM platform.delivery AS delivery
WHERE delivery.tenant_id = ANY(%(tenants)s) AND delivery.state IN ('queued', 'sending')

-- name: moving
-- Those that wait for their next attempt, or behind one that does, are not.
SELECT count(*)
FROM platform.delivery AS delivery
WHERE
    delivery.tenant_id = ANY(%(tenants)s) AND delivery.state IN ('queued', 'sending')
    AND coalesce(delivery.reason, '') NOT IN ('retry', 'in_order')

-- name: live
SELECT count(*)
FROM platform.nudge AS nudge
WHERE nudge.tenant_id = ANY(%(tenants)s) AND nudge.state IN ('scheduled', 'pending')

-- name: books
-- What each group owes and what it has decided.
SELECT
    owed.group_name,
    (
        SELECT count(*) FROM platform.outbox AS fact
        WHERE fact.topic = ANY(array_agg(owed.topic)) AND fact.tenant_id = ANY(%(tenants)s)
    ),
    (
        SELECT count(*) FROM platform.decision AS decided
        WHERE decided.group_name = owed.group_name AND decided.tenant_id = ANY(%(tenants)s)
    )
FROM unnest(%(reader_groups)s::text [], %(reader_topics)s::text []) AS owed (group_name, topic)
GROUP BY owed.group_name
ORDER BY owed.group_name

-- name: intents
-- How many messages were decided on, and for how many somebody was found.
SELECT
    (
        SELECT count(*) FROM platform.decision AS decided
        WHERE
            decided.tenant_id = ANY(%(tenants)s) AND decided.outcome IN ('fired', 'immediate')
            AND decided.reason IS NULL
    ),
    (
        SELECT count(DISTINCT (told.tenant_id, told.intent_id)) FROM platform.notification AS told
        WHERE told.tenant_id = ANY(%(tenants)s) AND told.product = %(product)s
    )

-- name: deliveries
SELECT
    delivery.delivery_id::text, delivery.tenant_id, delivery.subject_id, delivery.kind, delivery.user_id,
    delivery.role, delivery.channel, delivery.state::text, delivery.reason, delivery.provider_ref,
    delivery.event_id::text, fact.recorded_at, delivery.nudge_id::text, nudge.state::text, delivery.claimed_at,
    shown.created_at, shown.retracted_at IS NOT NULL
FROM platform.delivery AS delivery
INNER JOIN platform.outbox AS fact
    ON fact.event_id = delivery.event_id AND fact.tenant_id = delivery.tenant_id
LEFT JOIN platform.nudge AS nudge ON nudge.nudge_id = delivery.nudge_id AND nudge.tenant_id = delivery.tenant_id
LEFT JOIN platform.inapp_message AS shown
    ON shown.delivery_id = delivery.delivery_id AND shown.tenant_id = delivery.tenant_id
WHERE delivery.tenant_id = ANY(%(tenants)s) AND delivery.product = %(product)s
ORDER BY delivery.seq

-- name: attempts
SELECT
    attempt.delivery_id::text, attempt.attempt, attempt.began_at, attempt.ended_at, attempt.outcome,
    attempt.status, attempt.provider_ref, attempt.error
FROM platform.delivery_attempt AS attempt
WHERE attempt.tenant_id = ANY(%(tenants)s)
ORDER BY attempt.delivery_id, attempt.attempt

-- name: decided_at
-- By the Clock.
SELECT decided.tenant_id, decided.event_id::text, decided.decided_at
FROM platform.decision AS decided
WHERE decided.tenant_id = ANY(%(tenants)s) AND decided.group_name = %(group)s

-- name: resend_some
-- Every seventh event once more: a capture that restarts repeats records just so, at new offsets.
SELECT platform.resend(array_agg(picked.event_id), array_agg(picked.tenant_id))
FROM (
    SELECT fact.event_id, fact.tenant_id
    FROM platform.outbox AS fact
    WHERE fact.tenant_id = ANY(%(tenants)s) AND fact.topic = %(topic)s AND fact.position %% 7 = 0
) AS picked

-- name: two_live
SELECT nudge.tenant_id, nudge.subject_id
FROM platform.nudge AS nudge
WHERE nudge.tenant_id = ANY(%(tenants)s) AND nudge.state IN ('scheduled', 'pending')
GROUP BY nudge.tenant_id, nudge.product, nudge.subject_id
HAVING count(*) > 1

-- name: events
SELECT fact.tenant_id, fact.event_id::text
FROM platform.outbox AS fact
WHERE fact.tenant_id = ANY(%(tenants)s) AND fact.topic = %(topic)s

-- name: decisions
-- On events; what the clock told is decided elsewhere.
SELECT
    decided.tenant_id, decided.event_id::text, decided.outcome::text, decided.reason, decided.nudge_id::text,
    decided.cancelled_nudge_id::text
FROM platform.decision AS decided
INNER JOIN platform.outbox AS fact ON fact.event_id = decided.event_id AND fact.tenant_id = decided.tenant_id
WHERE
    decided.tenant_id = ANY(%(tenants)s) AND decided.group_name = %(group)s AND fact.topic = %(topic)s

-- name: journeys
SELECT journey.tenant_id, journey.subject_id, journey.reached, journey.epoch_began_at, journey.ended_at
FROM platform.journey_progress AS journey
WHERE journey.tenant_id = ANY(%(tenants)s) AND journey.product = %(product)s

-- name: nudges
SELECT
    nudge.tenant_id, nudge.nudge_id::text, nudge.subject_id, nudge.step, nudge.due_at, nudge.state::text,
    nudge.superseded_by::text, nudge.cancelled_by::text, nudge.reason
FROM platform.nudge AS nudge
WHERE nudge.tenant_id = ANY(%(tenants)s) AND nudge.product = %(product)s

-- name: dead_letters
SELECT letter.tenant_id, letter.event_id::text, letter.reason
FROM platform.dead_letter AS letter
WHERE letter.tenant_id = ANY(%(tenants)s) AND letter.group_name = %(group)s AND letter.state = 'open'

-- name: outcomes
SELECT decided.tenant_id, decided.outcome::text, coalesce(decided.reason, ''), count(*)
FROM platform.decision AS decided
WHERE decided.tenant_id = ANY(%(tenants)s) AND decided.group_name = %(group)s
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3

-- name: recorded_at
SELECT fact.tenant_id, fact.event_id::text, fact.subject_id, fact.recorded_at
FROM platform.outbox AS fact
WHERE fact.tenant_id = ANY(%(tenants)s) AND fact.topic = %(topic)s

-- name: why
SELECT
    fact.event_id::text, fact.event_type, fact.occurred_at, decided.outcome::text, decided.reason, made.kind,
    made.state::text, gone.kind
FROM platform.outbox AS fact
JOIN platform.decision AS decided
    ON decided.event_id = fact.event_id AND decided.tenant_id = fact.tenant_id AND decided.group_name = %(group)s
LEFT JOIN platform.nudge AS made ON made.nudge_id = decided.nudge_id AND made.tenant_id = decided.tenant_id
LEFT JOIN platform.nudge AS gone
    ON gone.nudge_id = decided.cancelled_nudge_id AND gone.tenant_id = decided.tenant_id
WHERE fact.tenant_id = %(tenant)s AND fact.topic = %(topic)s AND fact.subject_id = %(subject)s
