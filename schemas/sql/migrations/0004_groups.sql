-- What the consumer groups keep: how far they are, what they must decide, and what they could not.

-- The fence: a batch is valid only if next_offset is what this process last read or wrote.
CREATE TABLE platform.consumer_progress (
  group_name text NOT NULL,
  topic_id text NOT NULL,
  partition integer NOT NULL CHECK (partition >= 0),
  topic text NOT NULL,
  next_offset bigint NOT NULL CHECK (next_offset >= 0),
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (group_name, topic_id, partition)
) WITH (fillfactor = 50); -- few rows, updated with every batch: room for HOT updates
COMMENT ON COLUMN platform.consumer_progress.topic_id IS
  'Kafka''s id of the topic: a topic that was recreated under its old name has a new one, and a new beginning';

CREATE TABLE platform.group_subscription (
  group_name text NOT NULL,
  topic text NOT NULL,
  since timestamptz NOT NULL,
  PRIMARY KEY (group_name, topic)
);
COMMENT ON TABLE platform.group_subscription IS
  'group_name owes a decision on every record of topic recorded since then; read by the reconciler and by retention';

-- open ──retry──► retried      open ──discard──► discarded
CREATE TYPE platform.dead_letter_state AS ENUM ('open', 'retried', 'discarded');

CREATE TABLE platform.dead_letter (
  dead_letter_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_name text NOT NULL,
  topic text NOT NULL,
  topic_id text NOT NULL,
  partition integer NOT NULL,
  "offset" bigint NOT NULL,
  tenant_id text,
  event_id uuid,
  event_type text,
  record_key bytea,
  headers jsonb,
  body bytea,
  reason text NOT NULL CHECK (reason ~ '^[a-z_]{1,40}$'),
  error text,
  state platform.dead_letter_state NOT NULL DEFAULT 'open',
  created_at timestamptz NOT NULL,
  closed_at timestamptz,
  closed_by text,
  note text,
  UNIQUE (group_name, topic_id, partition, "offset"),
  CHECK ((state = 'open') = (closed_at IS NULL))
);
COMMENT ON COLUMN platform.dead_letter.tenant_id IS 'null when it could not be read: such a row only operators see';
CREATE INDEX dead_letter_open ON platform.dead_letter (group_name, dead_letter_id) WHERE state = 'open';
CREATE INDEX dead_letter_of_event ON platform.dead_letter (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX dead_letter_of_subject ON platform.dead_letter USING hash (record_key); -- a key may be longer than a btree takes
SELECT platform.guard_rows('platform.dead_letter');

-- Drops one day of outbox and decision. Refuses while anything of that day may still be needed: a day inside the horizon
-- (a record of it may yet be delivered again and must find its decision), or one with an event a group still owes.
CREATE FUNCTION platform.drop_day(day date, as_of timestamptz DEFAULT now()) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms' AS $$
DECLARE
  oldest_kept timestamptz := as_of - (SELECT i.horizon FROM platform.installation i);
  lower_bound uuid := platform.day_floor(day);
  upper_bound uuid := platform.day_floor(day + 1);
  owing text;
  root regclass;
  leaf text;
  dropped integer := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('platform.partitions', 0));
  IF (day + 1)::timestamp AT TIME ZONE 'UTC' > oldest_kept OR EXISTS (
       SELECT FROM platform.outbox o
        WHERE o.event_id >= lower_bound AND o.event_id < upper_bound AND o.recorded_at > oldest_kept) THEN
    RAISE EXCEPTION 'day % holds events recorded after %', day, oldest_kept
      USING ERRCODE = 'TO102', HINT = 'Days are dropped once they lie wholly behind installation.horizon.';
  END IF;
  SELECT s.group_name INTO owing
    FROM platform.group_subscription s
    JOIN platform.outbox o ON o.topic = s.topic AND o.recorded_at >= s.since
   WHERE o.event_id >= lower_bound AND o.event_id < upper_bound
     AND NOT EXISTS (
       SELECT FROM platform.decision d
        WHERE d.event_id = o.event_id AND d.tenant_id = o.tenant_id AND d.group_name = s.group_name)
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'day % holds records that group % has not decided', day, owing
      USING ERRCODE = 'TO103', HINT = 'Let the group catch up, resend what was lost, or end its subscription.';
  END IF;
  FOREACH root IN ARRAY ARRAY['platform.outbox', 'platform.decision']::regclass[] LOOP
    IF platform.is_partition(root, day) THEN
      leaf := format('platform.%I', platform.partition_name(root, day));
      EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', root, leaf);
      EXECUTE format('DROP TABLE %s', leaf);
      dropped := dropped + 1;
    END IF;
  END LOOP;
  RETURN dropped;
END
$$;
COMMENT ON FUNCTION platform.drop_day IS 'returns how many partitions it dropped; 0 when they were gone; 55P03: call again';

-- The completeness probe as a relation: inlined where it stands in FROM, so it nests in a set-based statement.
-- Each OFFSET 0 keeps the planner from being clever: the events of one subject by its index, then for each a probe of one
-- key in one day. As a join, a plan made while tables are small would read all decisions; flattened, it would have a
-- copy of the inner plan for every day of the outer.
CREATE FUNCTION platform.undecided_events(group_name text, tenant text, product text, subject text)
RETURNS TABLE (event_id uuid) LANGUAGE sql STABLE AS $$
  SELECT e.event_id
    FROM (SELECT o.event_id, o.tenant_id
            FROM platform.outbox o
           WHERE o.message_key = undecided_events.tenant || ':' || undecided_events.subject
             AND o.topic = 'events.' || undecided_events.product
             AND o.topic LIKE 'events.%' -- says no more than the line above, but lets the planner take the partial index
             AND o.tenant_id = undecided_events.tenant
          OFFSET 0) AS e
   WHERE NOT EXISTS (
     SELECT FROM platform.decision d
      WHERE d.event_id = e.event_id
        AND d.tenant_id = e.tenant_id
        AND d.group_name = undecided_events.group_name
     OFFSET 0)
$$;

CREATE FUNCTION platform.undecided(group_name text, tenant text, product text, subject text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM platform.undecided_events(group_name, tenant, product, subject))
$$;
COMMENT ON FUNCTION platform.undecided IS
  'true while some committed event of the subject lacks the group''s decision, however far capture or the group lag';
