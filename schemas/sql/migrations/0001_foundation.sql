-- Who is served and what is configured: the installation, its tenants, its products, its time.

-- Every table that names a tenant is guarded from its first moment: nobody reads or writes a row without a policy
-- that says so, the owner included (its policy is the one below; superusers and BYPASSRLS roles are not ours).
CREATE FUNCTION platform.guard_rows(guarded regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', guarded);
  EXECUTE format('CREATE POLICY owner_all ON %s TO CURRENT_USER USING (true) WITH CHECK (true)', guarded);
END
$$;

CREATE TABLE platform.installation (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  cell text NOT NULL DEFAULT 'main' CHECK (cell ~ '^[a-z0-9-]{1,40}$'),
  payload_limit integer NOT NULL DEFAULT 262144 CHECK (payload_limit BETWEEN 1024 AND 8388608),
  horizon interval NOT NULL DEFAULT '14 days' CHECK (horizon BETWEEN '1 day' AND '366 days')
);
COMMENT ON COLUMN platform.installation.payload_limit IS 'bytes an event''s payload may have';
COMMENT ON COLUMN platform.installation.horizon IS
  'H: how long events are kept, in Postgres and in Kafka; what was recorded longer ago is not decided any more';
INSERT INTO platform.installation DEFAULT VALUES;

-- active ──suspend──► suspended ──resume──► active
CREATE TYPE platform.tenant_state AS ENUM ('active', 'suspended');

CREATE TABLE platform.tenant (
  tenant_id text PRIMARY KEY CHECK (tenant_id ~ '^[a-z0-9-]{1,40}$'),
  name text NOT NULL CHECK (name <> ''),
  state platform.tenant_state NOT NULL DEFAULT 'active',
  held_at timestamptz CHECK (isfinite(held_at)),
  schema_name text UNIQUE,
  created_at timestamptz NOT NULL
);
COMMENT ON COLUMN platform.tenant.state IS
  'suspended: events are accepted and journeys move on, the clock fires nothing (else something stale would go out on resume)';
COMMENT ON COLUMN platform.tenant.held_at IS 'the instant this tenant''s clock stands at; null when it runs';
SELECT platform.guard_rows('platform.tenant');

CREATE TABLE platform.tenant_grant (
  role name NOT NULL,
  tenant_id text NOT NULL REFERENCES platform.tenant,
  PRIMARY KEY (role, tenant_id)
);
CREATE INDEX tenant_grant_by_tenant ON platform.tenant_grant (tenant_id);
SELECT platform.guard_rows('platform.tenant_grant');

CREATE TABLE platform.product (
  product text PRIMARY KEY CHECK (product ~ '^[a-z][a-z0-9_-]{0,39}$'),
  registered_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE platform.product IS 'products whose events are accepted; the contracts themselves are files';

CREATE TABLE platform.clock (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  real_at timestamptz NOT NULL CHECK (isfinite(real_at)),
  clock_at timestamptz NOT NULL CHECK (isfinite(clock_at)),
  rate double precision NOT NULL DEFAULT 1 CHECK (rate >= 0 AND rate < 'Infinity')
);
COMMENT ON TABLE platform.clock IS 'the platform''s time is clock_at + (real time - real_at) * rate';
INSERT INTO platform.clock (real_at, clock_at) VALUES (now(), now());

-- Seconds rather than an interval's days: a day is 24 hours here, whatever the session's time zone does that night.
CREATE FUNCTION platform.clock_now(tenant text DEFAULT NULL) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(
    (SELECT t.held_at FROM platform.tenant t WHERE t.tenant_id = clock_now.tenant),
    (SELECT c.clock_at + make_interval(secs => extract(epoch FROM now() - c.real_at)::double precision * c.rate)
       FROM platform.clock c)
  )
$$;
COMMENT ON FUNCTION platform.clock_now IS
  'the platform''s time in this transaction, or the instant the tenant is held at; producers.clock computes the same';

CREATE TABLE platform.import (
  tenant_id text NOT NULL REFERENCES platform.tenant,
  import_id text NOT NULL CHECK (import_id <> '' AND length(import_id) <= 200),
  product text NOT NULL REFERENCES platform.product,
  first_started_at timestamptz NOT NULL,
  rows_done bigint NOT NULL DEFAULT 0 CHECK (rows_done >= 0),
  rows_total bigint CHECK (rows_total >= 0),
  finished_at timestamptz,
  PRIMARY KEY (tenant_id, import_id)
);
COMMENT ON COLUMN platform.import.first_started_at IS
  'real time; the ids of the rows derive from it, so that a resumed import gives the same ids';
SELECT platform.guard_rows('platform.import');
