-- Firing: what the clock needs to find due nudges, to let those wait whose past is not complete, and to sleep meanwhile.

-- Real time, both: what is waited for is capture and a group, whatever the Clock shows.
ALTER TABLE platform.nudge ADD COLUMN waits_since timestamptz;
ALTER TABLE platform.nudge ADD COLUMN retry_at timestamptz;
ALTER TABLE platform.nudge ADD CONSTRAINT nudge_waits_for_a_retry CHECK ((waits_since IS NULL) = (retry_at IS NULL));
COMMENT ON COLUMN platform.nudge.waits_since IS
  'when the clock first found it due while an event of its subject was undecided; real time; null while nothing held it back';
COMMENT ON COLUMN platform.nudge.retry_at IS 'when the clock looks again; real time';
GRANT UPDATE (waits_since, retry_at) ON platform.nudge TO consumer;

-- By tenant, so that the nudges of one that is held or suspended are not read past, however many they are; apart from those
-- that wait, so that these are never first in line.
DROP INDEX platform.nudge_due;
CREATE INDEX nudge_due ON platform.nudge (tenant_id, due_at) WHERE state = 'scheduled' AND retry_at IS NULL;
CREATE INDEX nudge_waiting ON platform.nudge (tenant_id, retry_at) WHERE state = 'scheduled' AND retry_at IS NOT NULL;

-- Wakes the clocks, which LISTEN on tellonce_due. The payload is the earliest due time that was added, in microseconds since
-- 1970 by the platform's time, so that a clock which wakes sooner anyway need not ask the database; empty: look again.
CREATE FUNCTION platform.notify_due() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  earliest timestamptz := (SELECT min(a.due_at) FROM added a WHERE a.state = 'scheduled');
BEGIN
  IF earliest IS NOT NULL THEN
    PERFORM pg_notify('tellonce_due', (extract(epoch FROM earliest) * 1000000)::bigint::text);
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION platform.notify_due IS 'tells the clocks the earliest due time among the nudges that were added';

CREATE FUNCTION platform.notify_time() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify('tellonce_due', '');
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION platform.notify_time IS 'tells the clocks that what is due may have changed: time moved, a tenant runs again';
REVOKE ALL ON FUNCTION platform.notify_due(), platform.notify_time() FROM PUBLIC;

CREATE TRIGGER nudge_wakes_clock AFTER INSERT ON platform.nudge
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION platform.notify_due();
CREATE TRIGGER nudge_moved_wakes_clock AFTER UPDATE OF due_at ON platform.nudge
  FOR EACH STATEMENT EXECUTE FUNCTION platform.notify_time();
CREATE TRIGGER tenant_wakes_clock AFTER UPDATE OF state, held_at ON platform.tenant
  FOR EACH STATEMENT EXECUTE FUNCTION platform.notify_time();
CREATE TRIGGER time_wakes_clock AFTER UPDATE ON platform.clock
  FOR EACH STATEMENT EXECUTE FUNCTION platform.notify_time();

-- The views of tenants' schemas show the columns that were added.
SELECT platform.create_tenant_schema(t.tenant_id) FROM platform.tenant t WHERE t.schema_name IS NOT NULL;
