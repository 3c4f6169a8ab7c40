-- name: slot
-- The slot as it stands, or no row. What it lags is measured against the insert position: all that is committed now
-- lies before it. LSNs as integers.
SELECT
    s.active,
    s.wal_status,
    s.confirmed_flush_lsn - '0/0'::pg_lsn,
    pg_current_wal_insert_lsn() - s.confirmed_flush_lsn,
    pg_current_wal_insert_lsn() - s.restart_lsn,
    s.safe_wal_size
FROM pg_replication_slots AS s
WHERE s.slot_name = %(slot)s AND s.database = current_database()

-- name: stream
-- Where the WAL ends now, and whether the publication publishes anything: PostgreSQL 18 streams on without one, and
-- leaves out what it would have published.
SELECT
    pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
    EXISTS (SELECT FROM pg_publication_tables AS t WHERE t.pubname = %(publication)s)

-- name: drop_slot
-- Only a slot whose WAL is gone, and only when nobody holds it: it can never be read again.
SELECT pg_drop_replication_slot(s.slot_name)
FROM pg_replication_slots AS s
WHERE s.slot_name = %(slot)s AND s.database = current_database() AND s.wal_status = 'lost' AND NOT s.active

-- name: owe_full_sweep
-- Whatever committed without a slot was never captured; the reconciler compares the whole outbox with the decisions.
UPDATE platform.reconciler SET full_owed = true
