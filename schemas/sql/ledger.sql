-- What `connectors.postgres.migrate` keeps about itself; exists before the first migration.

-- name: create
-- USAGE on the schema and SELECT here let every role check at its start that the schema is the one it was built for.
CREATE SCHEMA IF NOT EXISTS platform;
CREATE TABLE IF NOT EXISTS platform.schema_migration (
  version integer PRIMARY KEY CHECK (version > 0),
  name text NOT NULL,
  checksum text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
GRANT USAGE ON SCHEMA platform TO domain, consumer, gateway, analyst;
GRANT SELECT ON platform.schema_migration TO domain, consumer, gateway, analyst;

-- name: lock
-- One migration at a time, whoever runs it; released with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('platform.schema_migration', 0));

-- name: exists
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = 'platform' AND c.relname = 'schema_migration');

-- name: applied
SELECT version, name, checksum FROM platform.schema_migration ORDER BY version;

-- name: record
INSERT INTO platform.schema_migration (version, name, checksum) VALUES (%(version)s, %(name)s, %(checksum)s);

-- name: ensure_partitions
-- Yesterday, for ids made just before midnight, and two weeks ahead.
SELECT platform.ensure_partitions((now() AT TIME ZONE 'UTC')::date - 1, 16);

-- name: register_products
INSERT INTO platform.product (product) SELECT unnest(%(products)s::text[]) ON CONFLICT DO NOTHING RETURNING product;
