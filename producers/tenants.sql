-- Tenants at run time, as the owner.

-- name: create
INSERT INTO platform.tenant (tenant_id, name, held_at, created_at)
VALUES (%(tenant_id)s, %(name)s, %(held_at)s, platform.clock_now())
ON CONFLICT DO NOTHING;

-- name: list
-- All of them, or the one that is named.
SELECT t.tenant_id, t.name, t.state::text, t.held_at, t.schema_name, t.created_at,
       coalesce((SELECT array_agg(g.role::text ORDER BY g.role) FROM platform.tenant_grant g WHERE g.tenant_id = t.tenant_id), '{}')
         AS roles
  FROM platform.tenant t
 WHERE %(tenant_id)s::text IS NULL OR t.tenant_id = %(tenant_id)s
 ORDER BY t.tenant_id;

-- name: set_state
UPDATE platform.tenant SET state = %(state)s::platform.tenant_state WHERE tenant_id = %(tenant_id)s;

-- name: hold
-- At the given instant, or where the tenant's clock stands now; clock_now gives a held tenant's own instant.
UPDATE platform.tenant SET held_at = coalesce(%(at)s, platform.clock_now(tenant_id)) WHERE tenant_id = %(tenant_id)s;

-- name: release
UPDATE platform.tenant SET held_at = NULL WHERE tenant_id = %(tenant_id)s;

-- name: grant
SELECT platform.grant_tenant(%(tenant_id)s, %(role)s);

-- name: revoke
SELECT platform.revoke_tenant(%(tenant_id)s, %(role)s);

-- name: create_schema
SELECT platform.create_tenant_schema(%(tenant_id)s);

-- name: drop_schema
SELECT platform.drop_tenant_schema(%(tenant_id)s);
