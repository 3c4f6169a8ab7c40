-- Retention reaches what the default partitions caught of days that never had a partition of their own: the clock stood
-- still over them, or the id is older than the installation. Such rows would stay for ever.

CREATE FUNCTION platform.id_day(id uuid) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) AT TIME ZONE 'UTC')::date
$$;
COMMENT ON FUNCTION platform.id_day IS 'the day in UTC whose partition an id belongs to, of any version; the inverse of day_floor';
REVOKE ALL ON FUNCTION platform.id_day(uuid) FROM PUBLIC;

-- SECURITY DEFINER, because nothing is granted on a partition.
CREATE OR REPLACE FUNCTION platform.expired_days(as_of timestamptz DEFAULT now()) RETURNS SETOF date
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH kept AS (
    SELECT ((as_of - i.horizon) AT TIME ZONE 'UTC')::date AS since FROM platform.installation i
  ), of_partitions AS (
    SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent IN ('platform.outbox'::regclass, 'platform.decision'::regclass) AND c.relname ~ '_[0-9]{8}$'
  )
  SELECT p.day FROM of_partitions p, kept WHERE p.day < kept.since
  UNION
  SELECT platform.id_day(o.event_id) FROM platform.outbox_default o, kept WHERE o.event_id < platform.day_floor(kept.since)
  UNION
  SELECT platform.id_day(d.event_id) FROM platform.decision_default d, kept WHERE d.event_id < platform.day_floor(kept.since)
  ORDER BY day
$$;
COMMENT ON FUNCTION platform.expired_days IS
  'days that lie wholly behind the horizon and of which there is anything, for drop_day; what the default partitions hold of them, '
  'ensure_partitions moves out first';
