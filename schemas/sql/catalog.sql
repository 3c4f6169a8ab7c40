-- The schema as the catalog has it, for `connectors.postgres.catalog`. One line per fact, in an order of its own, without
-- what comes and goes at run time: day partitions and the schemas of tenants.

-- name: describe
WITH relations AS (
  SELECT c.* FROM pg_catalog.pg_class c
   WHERE c.relnamespace = 'platform'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname !~ '_[0-9]{8}$'
), facts (section, object, rank, fact) AS (
  SELECT 'type', t.typname::text, e.enumsortorder, e.enumlabel::text
    FROM pg_catalog.pg_enum e JOIN pg_catalog.pg_type t ON t.oid = e.enumtypid
   WHERE t.typnamespace = 'platform'::regnamespace
  UNION ALL
  SELECT 'table', c.relname::text, 0,
         concat_ws(' ',
           CASE WHEN c.relispartition THEN 'partition ' || pg_get_expr(c.relpartbound, c.oid) END,
           CASE WHEN c.relkind = 'p' THEN 'partitioned by ' || pg_get_partkeydef(c.oid) END,
           'owner ' || pg_get_userbyid(c.relowner),
           CASE WHEN c.relrowsecurity THEN 'row security' END,
           CASE WHEN c.relforcerowsecurity THEN 'forced' END,
           'with ' || array_to_string(c.reloptions, ', '))
    FROM relations c
  UNION ALL
  SELECT 'table', c.relname::text, 100 + a.attnum,
         concat_ws(' ', 'column', a.attname, format_type(a.atttypid, a.atttypmod),
           CASE WHEN a.attnotnull THEN 'not null' END,
           CASE a.attidentity WHEN 'a' THEN 'identity' WHEN 'd' THEN 'identity by default' END,
           CASE a.attgenerated WHEN 's' THEN 'generated' WHEN 'v' THEN 'virtual' ELSE 'default' END
             || ' ' || pg_get_expr(d.adbin, d.adrelid))
    FROM relations c
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  UNION ALL
  SELECT 'table', c.relname::text, 2000, concat_ws(' ', 'constraint', o.conname, pg_get_constraintdef(o.oid))
    FROM relations c JOIN pg_catalog.pg_constraint o ON o.conrelid = c.oid AND o.contype <> 'n'
  UNION ALL
  SELECT 'table', c.relname::text, 3000, pg_get_indexdef(i.indexrelid)
    FROM relations c JOIN pg_catalog.pg_index i ON i.indrelid = c.oid
  UNION ALL
  SELECT 'table', c.relname::text, 4000, pg_get_triggerdef(t.oid)
    FROM relations c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
  UNION ALL
  SELECT 'table', c.relname::text, 5000,
         concat_ws(' ', 'policy', p.polname, CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
           CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete' ELSE 'all' END,
           'to', (SELECT string_agg(r.rolname, ', ' ORDER BY r.rolname) FROM pg_catalog.pg_roles r WHERE r.oid = ANY (p.polroles)),
           'using ' || pg_get_expr(p.polqual, p.polrelid), 'check ' || pg_get_expr(p.polwithcheck, p.polrelid))
    FROM relations c JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
  UNION ALL
  SELECT 'table', c.relname::text, 6000,
         concat_ws(' ', 'grant', string_agg(lower(g.privilege_type), ', ' ORDER BY g.privilege_type), 'to', r.rolname)
    FROM relations c, LATERAL aclexplode(c.relacl) g JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
   WHERE g.grantee <> c.relowner
   GROUP BY c.relname, r.rolname
  UNION ALL
  SELECT 'table', c.relname::text, 7000,
         concat_ws(' ', 'grant', lower(g.privilege_type), '(' || string_agg(a.attname, ', ' ORDER BY a.attnum) || ')', 'to', r.rolname)
    FROM relations c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid, LATERAL aclexplode(a.attacl) g
    JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
   WHERE g.grantee <> c.relowner
   GROUP BY c.relname, g.privilege_type, r.rolname
  UNION ALL
  SELECT 'table', c.relname::text, 8000, 'granted to everybody: ' || lower(g.privilege_type)
    FROM relations c, LATERAL aclexplode(c.relacl) g WHERE g.grantee = 0
  UNION ALL
  SELECT 'function', p.oid::regprocedure::text, 0,
         concat_ws(' ', 'returns', pg_get_function_result(p.oid), l.lanname,
           CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
           CASE WHEN p.prosecdef THEN 'security definer' END, 'set ' || array_to_string(p.proconfig, ', '),
           'body ' || md5(p.prosrc))
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
   WHERE p.pronamespace = 'platform'::regnamespace
  UNION ALL
  SELECT 'function', p.oid::regprocedure::text, 1,
         'execute to ' || string_agg(coalesce(r.rolname, 'everybody'), ', ' ORDER BY r.rolname)
    FROM pg_catalog.pg_proc p, LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
   WHERE p.pronamespace = 'platform'::regnamespace AND g.grantee <> p.proowner
   GROUP BY p.oid
  UNION ALL
  SELECT 'publication', p.pubname::text, 0,
         format('%s insert %s update %s delete %s truncate %s via root %s generated %s', t.schemaname || '.' || t.tablename,
           p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate, p.pubviaroot, p.pubgencols)
    FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_tables t ON t.pubname = p.pubname
  UNION ALL
  SELECT 'schema', n.nspname::text, 0,
         concat_ws(' ', 'grant', string_agg(lower(g.privilege_type), ', ' ORDER BY g.privilege_type), 'to',
                   coalesce(r.rolname, 'everybody'))
    FROM pg_catalog.pg_namespace n, LATERAL aclexplode(n.nspacl) g LEFT JOIN pg_catalog.pg_roles r ON r.oid = g.grantee
   WHERE n.nspname = 'platform' AND g.grantee <> n.nspowner
   GROUP BY n.nspname, r.rolname
)
SELECT section, object, regexp_replace(fact, '\s+', ' ', 'g')
  FROM facts ORDER BY section, object COLLATE "C", rank, fact COLLATE "C";
