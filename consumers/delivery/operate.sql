-- name: lock_named
-- Whoever claims them meanwhile passes them by; what is claimed already is waited for, and is then being sent.
SELECT delivery_id::text, tenant_id, nudge_id::text, state::text, reason, due_at
  FROM platform.delivery
 WHERE delivery_id = ANY (%(delivery_ids)s::uuid[])
 ORDER BY delivery_id, tenant_id
   FOR UPDATE;
