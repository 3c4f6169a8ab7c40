-- Tenants at run time: grants to roles, and for those who want one a schema of views with plain names.
-- All of it is the owner's: nothing here is granted to anybody.

CREATE FUNCTION platform.require_tenant(tenant text) RETURNS platform.tenant
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_tenant platform.tenant;
BEGIN
  SELECT t.* INTO found_tenant FROM platform.tenant t WHERE t.tenant_id = tenant FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'tenant "%" is unknown', tenant USING ERRCODE = 'TO001';
  END IF;
  RETURN found_tenant;
END
$$;

-- The schema of one tenant. A service does SET LOCAL search_path and SET LOCAL app.tenant_id once per transaction and
-- uses plain names; the views run with the rights of whoever uses them, so the policies of the tables hold here too.
-- Again: brings the views and grants up to date (a migration that adds a column calls it for every tenant).
CREATE FUNCTION platform.create_tenant_schema(tenant text) RETURNS text
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
  FOREACH viewed IN ARRAY ARRAY['outbox', 'decision', 'journey_progress', 'nudge'] LOOP
    EXECUTE format(
      'CREATE OR REPLACE VIEW %I.%I WITH (security_invoker = true, check_option = cascaded) AS '
      'SELECT * FROM platform.%I WHERE tenant_id = %L', view_schema, viewed, viewed, tenant);
    EXECUTE format('ALTER VIEW %I.%I ALTER COLUMN tenant_id SET DEFAULT %L', view_schema, viewed, tenant);
    EXECUTE format('GRANT SELECT ON %I.%I TO domain, analyst', view_schema, viewed);
  END LOOP;
  EXECUTE format(
    'GRANT INSERT (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, '
    'occurred_at, traceparent) ON %I.outbox TO domain', view_schema);
  FOR grantee IN SELECT g.role FROM platform.tenant_grant g WHERE g.tenant_id = tenant LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', view_schema, grantee);
  END LOOP;
  RETURN view_schema;
END
$$;

-- RESTRICT: what somebody else built on the views is not ours to drop.
CREATE FUNCTION platform.drop_tenant_schema(tenant text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its platform.tenant := platform.require_tenant(tenant);
  viewed text;
BEGIN
  IF its.schema_name IS NULL THEN
    RETURN false;
  END IF;
  FOREACH viewed IN ARRAY ARRAY['outbox', 'decision', 'journey_progress', 'nudge'] LOOP
    EXECUTE format('DROP VIEW IF EXISTS %I.%I', its.schema_name, viewed);
  END LOOP;
  EXECUTE format('DROP SCHEMA %I', its.schema_name);
  UPDATE platform.tenant t SET schema_name = NULL WHERE t.tenant_id = tenant;
  RETURN true;
END
$$;

CREATE FUNCTION platform.grant_tenant(tenant text, grantee name) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its platform.tenant := platform.require_tenant(tenant);
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = grantee) THEN
    RAISE EXCEPTION 'role "%" does not exist', grantee USING ERRCODE = 'TO201';
  END IF;
  IF its.schema_name IS NOT NULL THEN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', its.schema_name, grantee);
  END IF;
  INSERT INTO platform.tenant_grant (role, tenant_id) VALUES (grantee, tenant) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION platform.grant_tenant IS 'true when the role did not have it before';

CREATE FUNCTION platform.revoke_tenant(tenant text, grantee name) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its platform.tenant := platform.require_tenant(tenant);
BEGIN
  IF its.schema_name IS NOT NULL AND EXISTS (SELECT FROM pg_roles WHERE rolname = grantee) THEN
    EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM %I', its.schema_name, grantee);
  END IF;
  DELETE FROM platform.tenant_grant g WHERE g.role = grantee AND g.tenant_id = tenant;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION platform.revoke_tenant IS 'true when the role had it before';

REVOKE ALL ON FUNCTION platform.require_tenant(text), platform.create_tenant_schema(text),
  platform.drop_tenant_schema(text), platform.grant_tenant(text, name), platform.revoke_tenant(text, name) FROM PUBLIC;
