-- From a fired intent to an accepted message: who people are, who is told of what, and what became of each message.

-- -- The directory: what domain services tell us of people, read whenever somebody is to be told. --------------------

CREATE TABLE platform.contact (
  tenant_id text NOT NULL,
  user_id text NOT NULL CHECK (user_id ~ '^[^:]{1,128}$'),
  active boolean NOT NULL DEFAULT true,
  first_name text CHECK (first_name !~ '[[:cntrl:]]' AND length(first_name) BETWEEN 1 AND 200),
  locale text NOT NULL DEFAULT 'en' CHECK (locale ~ '^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$'),
  zone text NOT NULL DEFAULT 'UTC' CHECK (
    zone ~ '^(Etc/GMT[+-][0-9]{1,2}|[A-Za-z_]+(/[A-Za-z0-9_-]+)*)$' AND (timestamp 'epoch' AT TIME ZONE zone) IS NOT NULL),
  email text CHECK (email ~ '^[^[:space:][:cntrl:]@<>,;]{1,64}@[^[:space:][:cntrl:]@<>,;]{1,255}$'),
  phone text CHECK (phone ~ '^\+[1-9][0-9]{6,14}$'),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id)
);
COMMENT ON TABLE platform.contact IS
  'people as they are now: a message is addressed when it is prepared and checked again when it is sent';
COMMENT ON COLUMN platform.contact.active IS 'false: nobody is told anything under this id any more';
COMMENT ON COLUMN platform.contact.zone IS 'IANA name; the database refuses one it does not know';
COMMENT ON COLUMN platform.contact.phone IS 'E.164';
COMMENT ON COLUMN platform.contact.updated_at IS 'when the database took it: real time, never the platform''s clock';
SELECT platform.guard_rows('platform.contact');

CREATE TABLE platform.assignment (
  tenant_id text NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL CHECK (subject_id ~ '^[^:]{1,128}$'),
  role text NOT NULL CHECK (role ~ '^[a-z][a-z_]{0,39}$'),
  user_id text NOT NULL CHECK (user_id ~ '^[^:]{1,128}$'),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, product, subject_id, role)
);
COMMENT ON TABLE platform.assignment IS
  'who has a role on a subject now, such as applicant or advisor; no row: nobody has it';
SELECT platform.guard_rows('platform.assignment');

-- A writer need not think of it, and cannot pretend.
CREATE FUNCTION platform.stamp_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.updated_at := now();
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION platform.stamp_update() FROM PUBLIC;
CREATE TRIGGER contact_stamp BEFORE UPDATE ON platform.contact FOR EACH ROW EXECUTE FUNCTION platform.stamp_update();
CREATE TRIGGER assignment_stamp BEFORE UPDATE ON platform.assignment FOR EACH ROW EXECUTE FUNCTION platform.stamp_update();

-- -- One person should know. ----------------------------------------------------------------------------------------

CREATE TABLE platform.notification (
  notification_id uuid NOT NULL CHECK (coalesce(uuid_extract_version(notification_id), 0) = 8),
  tenant_id text NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL,
  kind text NOT NULL,
  intent_id uuid NOT NULL,
  event_id uuid NOT NULL,
  nudge_id uuid,
  user_id text NOT NULL,
  role text NOT NULL,
  locale text NOT NULL,
  zone text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (notification_id, tenant_id)
);
COMMENT ON COLUMN platform.notification.event_id IS 'the cause; for a nudge, the event that reached the step';
COMMENT ON COLUMN platform.notification.role IS
  'what the person was told as: applicant, advisor, user, payload.<field>; address: user_id is an address, and nobody''s id';
COMMENT ON COLUMN platform.notification.locale IS 'the person''s, with the zone, as of the creation';
SELECT platform.guard_rows('platform.notification');
CREATE INDEX notification_history ON platform.notification (tenant_id, product, subject_id);
CREATE INDEX notification_of_nudge ON platform.notification (nudge_id) WHERE nudge_id IS NOT NULL;

-- -- One message to one recipient on one channel, however many attempts. --------------------------------------------

-- queued ──claim──► sending ──accepted──► sent
--   ▲  │               │ └──rejected, exhausted──► failed
--   │  │               ├──re-check at the claim──► suppressed, expired
--   │  │               └──unknown outcome────────► held ──operator──► queued, suppressed
--   │  └──cancelled, expired before a claim──────► suppressed, expired
--   └──retry, deferred─┘
-- "Accepted" wins however late it comes: queued and held -> sent too, when an attempt that was given up was accepted
-- after all. An in-app message is accepted by its own row, in its claim.
CREATE TYPE platform.delivery_state AS ENUM ('queued', 'sending', 'sent', 'failed', 'suppressed', 'expired', 'held');

CREATE TABLE platform.delivery (
  delivery_id uuid NOT NULL CHECK (coalesce(uuid_extract_version(delivery_id), 0) = 8),
  tenant_id text NOT NULL,
  notification_id uuid NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL,
  kind text NOT NULL,
  user_id text NOT NULL,
  role text NOT NULL,
  channel text NOT NULL,
  account text NOT NULL,
  state platform.delivery_state NOT NULL DEFAULT 'queued',
  seq bigint GENERATED ALWAYS AS IDENTITY,
  lane text NOT NULL,
  nudge_id uuid,
  event_id uuid NOT NULL,
  due_at timestamptz NOT NULL CHECK (isfinite(due_at)),
  lease_until timestamptz,
  attempt_token uuid,
  attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  first_attempt_at timestamptz,
  claimed_at timestamptz,
  expires_at timestamptz,
  reason text CHECK (reason ~ '^[a-z_.0-9]{1,80}$'),
  provider_ref text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (delivery_id, tenant_id),
  CONSTRAINT delivery_lease_while_sending CHECK (
    state <> 'sending' OR lease_until IS NOT NULL AND attempt_token IS NOT NULL),
  CONSTRAINT delivery_reason_when_not_sent CHECK (state NOT IN ('failed', 'suppressed', 'held') OR reason IS NOT NULL)
);
COMMENT ON COLUMN platform.delivery.account IS 'the provider account that sends it; what is in flight is bounded per account';
COMMENT ON COLUMN platform.delivery.seq IS 'order of preparation; promised within (tenant, subject, user, channel, lane)';
COMMENT ON COLUMN platform.delivery.lane IS
  'the topic of the record that emitted it; with tenant and subject, which key its records, that names one partition';
COMMENT ON COLUMN platform.delivery.due_at IS 'not claimed before: now, the end of a retry''s pause, or of a deferral';
COMMENT ON COLUMN platform.delivery.attempt_token IS 'of the attempt under way: its outcome is recorded under this token only';
SELECT platform.guard_rows('platform.delivery');
-- Few and narrow: the state is in their predicate, so no update of it can be HOT.
CREATE INDEX delivery_work ON platform.delivery (account, due_at) WHERE state IN ('queued', 'sending');
CREATE INDEX delivery_order ON platform.delivery (tenant_id, subject_id, user_id, channel, seq)
  WHERE state IN ('queued', 'sending');
CREATE INDEX delivery_history ON platform.delivery (tenant_id, product, subject_id, seq);

CREATE FUNCTION platform.refuse_delivery_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'delivery % cannot go from % to %', NEW.delivery_id,
      CASE TG_OP WHEN 'INSERT' THEN 'nothing' ELSE OLD.state::text END, NEW.state
    USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
          HINT = 'A delivery begins queued; sent, failed, suppressed and expired are its ends.';
END
$$;
REVOKE ALL ON FUNCTION platform.refuse_delivery_transition() FROM PUBLIC;
CREATE TRIGGER delivery_beginning BEFORE INSERT ON platform.delivery
  FOR EACH ROW WHEN (NEW.state <> 'queued') EXECUTE FUNCTION platform.refuse_delivery_transition();
CREATE TRIGGER delivery_transition BEFORE UPDATE OF state ON platform.delivery
  FOR EACH ROW WHEN (NOT (
    NEW.state = OLD.state
    OR OLD.state = 'queued' AND NEW.state IN ('sending', 'sent', 'suppressed', 'expired')
    OR OLD.state = 'sending' AND NEW.state IN ('queued', 'sent', 'failed', 'suppressed', 'expired', 'held')
    OR OLD.state = 'held' AND NEW.state IN ('queued', 'sent', 'suppressed')
  )) EXECUTE FUNCTION platform.refuse_delivery_transition();

CREATE TABLE platform.delivery_body (
  delivery_id uuid NOT NULL,
  tenant_id text NOT NULL,
  address text NOT NULL,
  content jsonb NOT NULL,
  traceparent text,
  frozen_at timestamptz NOT NULL,
  PRIMARY KEY (delivery_id, tenant_id)
);
COMMENT ON TABLE platform.delivery_body IS
  'what is sent, frozen by the first claim that says send: a retry never changes what was sent';
SELECT platform.guard_rows('platform.delivery_body');

CREATE TABLE platform.delivery_attempt (
  delivery_id uuid NOT NULL,
  tenant_id text NOT NULL,
  attempt integer NOT NULL CHECK (attempt > 0),
  token uuid NOT NULL,
  began_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  outcome text NOT NULL CHECK (outcome ~ '^[a-z_]{1,40}$'),
  status integer,
  provider_ref text,
  error text,
  latency_ms integer CHECK (latency_ms >= 0),
  PRIMARY KEY (delivery_id, tenant_id, attempt)
);
COMMENT ON TABLE platform.delivery_attempt IS 'one call of a provider and its answer; neither secrets nor bodies';
SELECT platform.guard_rows('platform.delivery_attempt');
CREATE INDEX delivery_attempt_by_ref ON platform.delivery_attempt (provider_ref) WHERE provider_ref IS NOT NULL;

CREATE TABLE platform.inapp_message (
  delivery_id uuid NOT NULL,
  tenant_id text NOT NULL,
  user_id text NOT NULL,
  content jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  retracted_at timestamptz,
  read_at timestamptz,
  PRIMARY KEY (delivery_id, tenant_id)
);
COMMENT ON COLUMN platform.inapp_message.retracted_at IS 'shown no more: its nudge was superseded';
SELECT platform.guard_rows('platform.inapp_message');
CREATE INDEX inapp_message_of_user ON platform.inapp_message (tenant_id, user_id, created_at);

-- -- What groups decide of timers, of events beside a journey, and of deliveries. -----------------------------------

ALTER TYPE platform.decision_outcome ADD VALUE 'fired';
ALTER TYPE platform.decision_outcome ADD VALUE 'cancelled';
ALTER TYPE platform.decision_outcome ADD VALUE 'ignored';
ALTER TYPE platform.decision_outcome ADD VALUE 'taken';

-- -- Who sees which rows, and who may do what to them. --------------------------------------------------------------

DO $$
DECLARE
  guarded text;
BEGIN
  FOREACH guarded IN ARRAY ARRAY['contact', 'assignment', 'notification', 'delivery', 'delivery_body', 'delivery_attempt',
                                 'inapp_message'] LOOP
    EXECUTE format('CREATE POLICY granted ON platform.%1$I FOR SELECT TO domain, analyst USING ('
      'EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = %1$I.tenant_id))', guarded);
    EXECUTE format('CREATE POLICY consumer_all ON platform.%I TO consumer USING (true) WITH CHECK (true)', guarded);
  END LOOP;
  FOREACH guarded IN ARRAY ARRAY['contact', 'assignment'] LOOP
    EXECUTE format('CREATE POLICY granted_write ON platform.%1$I TO domain USING ('
      'EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = %1$I.tenant_id)) WITH CHECK ('
      'CASE WHEN EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = %1$I.tenant_id) '
      'THEN true ELSE platform.refuse(''TO001'', format(''tenant "%%s" is unknown, or not granted to role "%%s"'', '
      'tenant_id, current_user), ''An operator creates tenants and grants them to roles.'') END)', guarded);
  END LOOP;
END
$$;

-- domain: keeps the directory, erasure included, and looks at what became of its events. What is written in a row's
-- name never changes: another person, subject or role is another row.
GRANT SELECT, INSERT, DELETE ON platform.contact, platform.assignment TO domain;
GRANT UPDATE (active, first_name, locale, zone, email, phone) ON platform.contact TO domain;
GRANT UPDATE (user_id) ON platform.assignment TO domain;
GRANT SELECT ON platform.notification, platform.delivery, platform.inapp_message TO domain;

-- analyst: reads what happened, without addresses and contents.
GRANT SELECT ON platform.assignment, platform.notification, platform.delivery, platform.delivery_attempt TO analyst;

GRANT SELECT ON platform.contact, platform.assignment TO consumer;
GRANT SELECT, INSERT ON platform.notification, platform.delivery, platform.delivery_body, platform.delivery_attempt,
  platform.inapp_message TO consumer;
GRANT UPDATE (state, due_at, lease_until, attempt_token, attempts, first_attempt_at, claimed_at, expires_at, reason,
  provider_ref, updated_at) ON platform.delivery TO consumer;
GRANT UPDATE (content, retracted_at) ON platform.inapp_message TO consumer;

-- -- The same tables under plain names, for tenants that have a schema of their own. --------------------------------

CREATE FUNCTION platform.tenant_views() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY['outbox', 'decision', 'journey_progress', 'nudge', 'contact', 'assignment', 'notification', 'delivery',
               'inapp_message']
$$;
REVOKE ALL ON FUNCTION platform.tenant_views() FROM PUBLIC;
COMMENT ON FUNCTION platform.tenant_views IS 'the tables that a tenant''s own schema shows';

CREATE OR REPLACE FUNCTION platform.create_tenant_schema(tenant text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its platform.tenant := platform.require_tenant(tenant);
  view_schema text := coalesce(its.schema_name, 'tenant_' || replace(tenant, '-', '_'));
  viewed text;
  grantee name;
BEGIN
  IF its.schema_name IS NULL THEN
    EXECUTE format('CREATE SCHEMA %I', view_schema);
    UPDATE platform.tenant t SET schema_name = view_schema WHERE t.tenant_id = tenant;
  END IF;
  FOREACH viewed IN ARRAY platform.tenant_views() LOOP
    EXECUTE format(
      'CREATE OR REPLACE VIEW %I.%I WITH (security_invoker = true, check_option = cascaded) AS '
      'SELECT * FROM platform.%I WHERE tenant_id = %L', view_schema, viewed, viewed, tenant);
    EXECUTE format('ALTER VIEW %I.%I ALTER COLUMN tenant_id SET DEFAULT %L', view_schema, viewed, tenant);
    EXECUTE format('GRANT SELECT ON %I.%I TO domain, analyst', view_schema, viewed);
  END LOOP;
  EXECUTE format(
    'GRANT INSERT (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, '
    'occurred_at, traceparent) ON %I.outbox TO domain', view_schema);
  EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %1$I.contact, %1$I.assignment TO domain', view_schema);
  FOR grantee IN SELECT g.role FROM platform.tenant_grant g WHERE g.tenant_id = tenant LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', view_schema, grantee);
  END LOOP;
  RETURN view_schema;
END
$$;

CREATE OR REPLACE FUNCTION platform.drop_tenant_schema(tenant text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its platform.tenant := platform.require_tenant(tenant);
  viewed text;
BEGIN
  IF its.schema_name IS NULL THEN
    RETURN false;
  END IF;
  FOREACH viewed IN ARRAY platform.tenant_views() LOOP
    EXECUTE format('DROP VIEW IF EXISTS %I.%I', its.schema_name, viewed);
  END LOOP;
  EXECUTE format('DROP SCHEMA %I', its.schema_name);
  UPDATE platform.tenant t SET schema_name = NULL WHERE t.tenant_id = tenant;
  RETURN true;
END
$$;

SELECT platform.create_tenant_schema(t.tenant_id) FROM platform.tenant t WHERE t.schema_name IS NOT NULL;
