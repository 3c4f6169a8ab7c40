-- How claims find their work: by channel and tenant, so that tenants take turns however long the backlog of one is; and
-- apart from those under way, whose leases are real time.

DROP INDEX platform.delivery_work;
DROP INDEX platform.delivery_order; -- a subject's history is short: what comes before is found there
CREATE INDEX delivery_due ON platform.delivery (channel, tenant_id, due_at) WHERE state = 'queued';
CREATE INDEX delivery_leased ON platform.delivery (channel, lease_until) WHERE state = 'sending';
CREATE INDEX delivery_of_nudge ON platform.delivery (nudge_id) WHERE nudge_id IS NOT NULL;
ALTER TABLE platform.delivery ALTER COLUMN account DROP NOT NULL;
COMMENT ON COLUMN platform.delivery.account IS
  'the provider account that the last claim chose; chosen at each claim, for an installation may change its accounts';
GRANT UPDATE (account) ON platform.delivery TO consumer;
