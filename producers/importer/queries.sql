-- name: begin
-- The first start gives the ids; every later one finds it here.
INSERT INTO platform.import (tenant_id, import_id, product, first_started_at)
VALUES (%(tenant)s, %(import_id)s, %(product)s, date_trunc('milliseconds', clock_timestamp()))
ON CONFLICT (tenant_id, import_id) DO NOTHING

-- name: known
SELECT
    EXISTS (SELECT FROM platform.tenant WHERE tenant_id = %(tenant)s),
    EXISTS (SELECT FROM platform.product WHERE product = %(product)s),
    payload_limit
FROM platform.installation

-- name: state
SELECT product, first_started_at, rows_done, rows_total, sorted_from, digest
FROM platform.import
WHERE tenant_id = %(tenant)s AND import_id = %(import_id)s

-- name: open_part
-- The rows from `sorted_from` to `rows_total` are the part under way; only from a finished one a further begins.
UPDATE platform.import
SET sorted_from = rows_done, rows_total = %(rows_total)s, digest = %(digest)s, finished_at = NULL
WHERE
    tenant_id = %(tenant)s AND import_id = %(import_id)s
    AND rows_done = %(rows_done)s AND coalesce(rows_total, 0) = %(rows_done)s

-- name: advance
-- Compare and set: of two processes doing the same import one stops here, and its batch with it.
UPDATE platform.import
SET
    rows_done = %(to)s,
    finished_at = CASE WHEN %(to)s = rows_total THEN clock_timestamp() END
WHERE tenant_id = %(tenant)s AND import_id = %(import_id)s AND rows_done = %(from)s AND rows_total = %(rows_total)s

-- name: insert
-- In the order given: what the outbox numbers, the WAL carries.
INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, payload, occurred_at, traceparent)
SELECT
    r.event_id, %(tenant)s, %(product)s, r.subject_id, r.event_type, r.payload, r.occurred_at, %(traceparent)s::text
FROM unnest(
    %(event_ids)s::uuid [], %(subjects)s::text [], %(event_types)s::text [],
    %(payloads)s::bytea [], %(times)s::timestamptz []
) WITH ORDINALITY AS r (event_id, subject_id, event_type, payload, occurred_at, place)
ORDER BY r.place
