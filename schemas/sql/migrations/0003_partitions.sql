-- Upkeep of the day partitions. Run by the clock as role consumer, hence SECURITY DEFINER: only the owner creates and
-- drops tables. Every lock is waited for 250 ms at most: whoever waits for ACCESS EXCLUSIVE makes all newcomers
-- wait behind it, so we would rather fail with 55P03 and be called again.

CREATE FUNCTION platform.partition_name(root regclass, day date) RETURNS text
LANGUAGE sql STABLE STRICT AS $$
  SELECT (SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid = root) || to_char(day, '"_"YYYYMMDD')
$$;

CREATE FUNCTION platform.is_partition(root regclass, day date) RETURNS boolean
LANGUAGE sql STABLE STRICT AS $$
  SELECT EXISTS (
    SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = root AND c.relname = platform.partition_name(root, day))
$$;

-- Makes one day of one root: CREATE, take over what the default partition caught meanwhile, ATTACH.
-- CREATE TABLE … PARTITION OF behind an open insert would block everyone's inserts; this way blocks nobody's.
-- The rows taken over are not captured a second time: a table that is not attached yet is not published, nor are deletes.
CREATE FUNCTION platform.add_partition(root regclass, day date) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms' AS $$
DECLARE
  leaf text := format('platform.%I', platform.partition_name(root, day));
  caught text := root || '_default';
  lower_bound uuid := platform.day_floor(day);
  upper_bound uuid := platform.day_floor(day + 1);
  stored_columns text;
BEGIN
  IF to_regclass(leaf) IS NULL THEN
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED)', leaf, root);
    PERFORM platform.guard_rows(leaf::regclass);
  END IF;
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO stored_columns
    FROM pg_attribute
   WHERE attrelid = root AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', caught);
  EXECUTE format(
    'WITH moved AS (DELETE FROM %s WHERE event_id >= %L AND event_id < %L RETURNING *) '
    'INSERT INTO %s (%s) SELECT %s FROM moved',
    caught, lower_bound, upper_bound, leaf, stored_columns, stored_columns);
  EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', root, leaf, lower_bound, upper_bound);
END
$$;

CREATE FUNCTION platform.ensure_partitions(first date, days integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms' AS $$
DECLARE
  roots regclass[] := ARRAY['platform.outbox', 'platform.decision'];
  root regclass;
  day date;
  made integer := 0;
BEGIN
  IF days NOT BETWEEN 0 AND 400 THEN
    RAISE EXCEPTION 'ensure_partitions makes 0 to 400 days at once, not %', days USING ERRCODE = 'TO101';
  END IF;
  IF NOT EXISTS (
    SELECT FROM generate_series(0, days - 1) AS n, unnest(roots) AS every (root)
     WHERE NOT platform.is_partition(every.root, first + n)) THEN
    RETURN 0;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('platform.partitions', 0)); -- several clocks may run
  FOREACH root IN ARRAY roots LOOP
    FOR day IN SELECT first + n FROM generate_series(0, days - 1) AS n LOOP
      IF NOT platform.is_partition(root, day) THEN
        PERFORM platform.add_partition(root, day);
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END
$$;
COMMENT ON FUNCTION platform.ensure_partitions IS
  'makes what is missing of these days, for outbox and decision; returns how many; again changes nothing; 55P03: call again';

CREATE FUNCTION platform.partition_gaps(days integer, as_of timestamptz DEFAULT now()) RETURNS SETOF date
LANGUAGE sql STABLE AS $$
  SELECT day
    FROM generate_series(0, days - 1) AS n,
         LATERAL (SELECT (as_of AT TIME ZONE 'UTC')::date + n AS day) AS coming
   WHERE NOT platform.is_partition('platform.outbox', day) OR NOT platform.is_partition('platform.decision', day)
   ORDER BY day
$$;
COMMENT ON FUNCTION platform.partition_gaps IS
  'days from as_of on without a partition: an alarm; until it is mended the default partitions catch the rows';

CREATE FUNCTION platform.expired_days(as_of timestamptz DEFAULT now()) RETURNS SETOF date
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent IN ('platform.outbox'::regclass, 'platform.decision'::regclass)
     AND c.relname ~ '_[0-9]{8}$'
     AND to_date(right(c.relname, 8), 'YYYYMMDD') + 1
         <= ((as_of - (SELECT horizon FROM platform.installation)) AT TIME ZONE 'UTC')::date
   ORDER BY day
$$;
COMMENT ON FUNCTION platform.expired_days IS 'days that lie wholly behind the horizon, for drop_day';
