-- The stream: the outbox that is captured and the decisions it led to, both by day of the time inside event_id.

-- The first id of an instant, to the millisecond: 48 bits of time, the rest zero.
CREATE FUNCTION platform.id_floor(instant timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (lpad(to_hex(floor(extract(epoch FROM instant) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

CREATE FUNCTION platform.day_floor(day date) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT platform.id_floor(day::timestamp AT TIME ZONE 'UTC')
$$;

CREATE FUNCTION platform.day_floor(instant timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT platform.id_floor(date_trunc('day', instant AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')
$$;

CREATE TABLE platform.outbox (
  event_id uuid NOT NULL DEFAULT uuidv7(),
  tenant_id text NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL,
  key_id text NOT NULL,
  message_key text NOT NULL GENERATED ALWAYS AS (tenant_id || ':' || key_id) STORED,
  topic text NOT NULL,
  event_type text NOT NULL,
  content_type text NOT NULL DEFAULT 'application/json',
  payload bytea NOT NULL,
  occurred_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  position bigint GENERATED ALWAYS AS IDENTITY,
  traceparent text,
  PRIMARY KEY (event_id, tenant_id),
  -- Facts carry version 7, derived ids version 8: nobody can take a derived id before its cause happens.
  -- The only check: an INSERT parses those of its partition every time, 10 to 20 µs each. What else a fact must be is
  -- asked by outbox_admit, compiled once per session.
  CONSTRAINT outbox_id_version CHECK (
    coalesce(uuid_extract_version(event_id), 0) = CASE WHEN topic LIKE 'events.%' THEN 7 ELSE 8 END)
) PARTITION BY RANGE (event_id);
COMMENT ON COLUMN platform.outbox.key_id IS 'what orders the record: the subject; the user for digests and in-app';
COMMENT ON COLUMN platform.outbox.occurred_at IS 'when it happened, by the domain''s clock';
COMMENT ON COLUMN platform.outbox.recorded_at IS 'when the database took it: real time, never the platform''s clock';
COMMENT ON COLUMN platform.outbox.position IS 'insertion order within one transaction; not commit order';
SELECT platform.guard_rows('platform.outbox');

-- The completeness probe: the events of one subject.
CREATE INDEX outbox_events_of_subject ON platform.outbox (message_key, event_id) WHERE topic LIKE 'events.%';

CREATE TABLE platform.outbox_default PARTITION OF platform.outbox DEFAULT;
SELECT platform.guard_rows('platform.outbox_default');

-- What a group decided on a record; closed, so that every record's fate can be told. Timer outcomes come with firing.
CREATE TYPE platform.decision_outcome AS ENUM (
  'scheduled', 'immediate', 'advanced', 'dropped', 'ended', 'restarted', 'lifecycle', 'dead_letter');

CREATE TABLE platform.decision (
  event_id uuid NOT NULL,
  tenant_id text NOT NULL,
  group_name text NOT NULL,
  outcome platform.decision_outcome NOT NULL,
  reason text,
  nudge_id uuid,
  cancelled_nudge_id uuid,
  detail jsonb,
  decided_at timestamptz NOT NULL,
  PRIMARY KEY (event_id, tenant_id, group_name)
) PARTITION BY RANGE (event_id);
COMMENT ON TABLE platform.decision IS
  'inbox and audit trail in one: what is here is decided and never decided again; at least one row per record and group';
SELECT platform.guard_rows('platform.decision');

CREATE TABLE platform.decision_default PARTITION OF platform.decision DEFAULT;
SELECT platform.guard_rows('platform.decision_default');

-- Row filter of the publication: none. Deletes are not published, so delete + insert sends a record again.
CREATE PUBLICATION tellonce_outbox FOR TABLE platform.outbox
  WITH (publish = 'insert', publish_via_partition_root = true, publish_generated_columns = stored);
