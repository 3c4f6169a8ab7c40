-- Postgres knows years that RFC 3339, and so the header ce_time, cannot say. A fact that nobody could read is refused with
-- its transaction, while whoever wrote it is still there, rather than becoming a dead letter.
CREATE POLICY readable_instant ON platform.outbox AS RESTRICTIVE FOR INSERT TO domain, CURRENT_USER WITH CHECK (
  CASE WHEN topic NOT LIKE 'events.%' OR extract(year FROM occurred_at AT TIME ZONE 'UTC') BETWEEN 1 AND 9999 THEN true
    ELSE platform.refuse('TO009', format('occurred_at %s is outside the years 1 to 9999', occurred_at),
      'Is it in milliseconds where seconds were meant?') END);
