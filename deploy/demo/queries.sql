-- What the demo looks at; it only reads, but for the resend, which is the platform's own function.

-- name: undecided
SELECT count(*)
FROM platform.outbox AS fact
WHERE
    fact.tenant_id = ANY(%(tenants)s) AND fact.topic = %(topic)s
    AND NOT EXISTS (
        SELECT FROM platform.decision AS decided
        WHERE
            decided.event_id = fact.event_id AND decided.tenant_id = fact.tenant_id
            AND decided.group_name = %(group)s
    )

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
SELECT
    decided.tenant_id, decided.event_id::text, decided.outcome::text, decided.reason, decided.nudge_id::text,
    decided.cancelled_nudge_id::text
FROM platform.decision AS decided
WHERE decided.tenant_id = ANY(%(tenants)s) AND decided.group_name = %(group)s

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

-- name: latency_ms
-- From the domain's transaction to its decision, both by the database's time.
SELECT
    percentile_cont(ARRAY[0.5, 0.99])
        WITHIN GROUP (ORDER BY extract(EPOCH FROM decided.decided_at - fact.recorded_at) * 1000)
FROM platform.outbox AS fact
JOIN platform.decision AS decided
    ON decided.event_id = fact.event_id AND decided.tenant_id = fact.tenant_id AND decided.group_name = %(group)s
WHERE fact.tenant_id = ANY(%(tenants)s) AND fact.topic = %(topic)s AND fact.subject_id LIKE %(leads)s

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
