-- What only a superuser can do, once per cluster: roles and the database. Every block may run again.
-- Run by `connectors.postgres.bootstrap`; plain SQL, so a DBA may paste the blocks instead.
-- No passwords here: `bootstrap` sets them as SCRAM verifiers, a managed Postgres has its own way.

-- name: roles
-- tellonce_owner  owns the database and every object, runs the migrations; no superuser, no BYPASSRLS
-- domain          domain services: append events of the tenants granted to them
-- consumer        our consumer groups and the clock: all tenants, only the statements they need
-- gateway         the HTTP edge for callbacks and receipts
-- analyst         reads the tenants granted to it
-- connect         Debezium; REPLICATION is never inherited, so its login carries the attribute itself
DO $$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES
      ('tellonce_owner', 'LOGIN'),
      ('domain', 'NOLOGIN'),
      ('consumer', 'NOLOGIN'),
      ('gateway', 'NOLOGIN'),
      ('analyst', 'NOLOGIN'),
      ('connect', 'NOLOGIN REPLICATION')
    ) AS roles (name, attributes)
  LOOP
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted.name) THEN
      EXECUTE format('CREATE ROLE %I %s', wanted.name, wanted.attributes);
    END IF;
  END LOOP;
END
$$;

-- name: create_database
-- Outside any transaction. The builtin C.UTF-8 locale sorts by code point on every platform: text keys compare
-- fast, and no operating system upgrade can silently reorder an index.
CREATE DATABASE tellonce OWNER tellonce_owner TEMPLATE template0
  ENCODING 'UTF8' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C';

-- name: database_access
REVOKE ALL ON DATABASE tellonce FROM PUBLIC;
GRANT CONNECT ON DATABASE tellonce TO domain, consumer, gateway, analyst, connect;
ALTER DATABASE tellonce SET timezone TO 'UTC';
