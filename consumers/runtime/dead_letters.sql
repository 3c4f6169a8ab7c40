-- name: listed
SELECT dead_letter_id, group_name, topic, partition, "offset", tenant_id, event_id::text, event_type, reason, error,
       state::text, created_at, closed_at, closed_by, note, record_key, headers, body
  FROM platform.dead_letter
 WHERE (%(state)s::text IS NULL OR state = %(state)s::platform.dead_letter_state)
   AND (%(group)s::text IS NULL OR group_name = %(group)s)
   AND (%(tenant)s::text IS NULL OR tenant_id = %(tenant)s)
   AND (%(reason)s::text IS NULL OR reason = %(reason)s)
 ORDER BY dead_letter_id DESC
 LIMIT %(limit)s;

-- name: shown
SELECT dead_letter_id, group_name, topic, partition, "offset", tenant_id, event_id::text, event_type, reason, error,
       state::text, created_at, closed_at, closed_by, note, record_key, headers, body
  FROM platform.dead_letter
 WHERE dead_letter_id = ANY (%(ids)s);

-- name: sendable
SELECT letter.dead_letter_id
  FROM platform.dead_letter AS letter
  JOIN platform.outbox AS fact
    ON fact.event_id = letter.event_id
   AND fact.tenant_id = letter.tenant_id
 WHERE letter.dead_letter_id = ANY (%(ids)s)
   AND letter.state = 'open';

-- name: withdraw
DELETE FROM platform.decision AS decided
 USING platform.dead_letter AS letter
 WHERE letter.dead_letter_id = ANY (%(ids)s)
   AND decided.event_id = letter.event_id
   AND decided.tenant_id = letter.tenant_id
   AND decided.group_name = letter.group_name
   AND decided.outcome = 'dead_letter';

-- name: send_again
SELECT platform.resend(array_agg(event_id), array_agg(tenant_id))
  FROM (SELECT DISTINCT event_id, tenant_id FROM platform.dead_letter WHERE dead_letter_id = ANY (%(ids)s)) AS letter;

-- name: close_retried
UPDATE platform.dead_letter
   SET state = 'retried', closed_at = %(now)s, closed_by = %(by)s
 WHERE dead_letter_id = ANY (%(ids)s);

-- name: close_discarded
UPDATE platform.dead_letter
   SET state = 'discarded', closed_at = %(now)s, closed_by = %(by)s, note = %(note)s
 WHERE dead_letter_id = ANY (%(ids)s);
