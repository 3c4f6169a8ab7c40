-- A delivery whose claim or record fails whatever is tried waits for a person, with what went wrong beside it; a nudge
-- whose kind the product has given up ends; in-app messages of what has been superseded are found by their lead.

ALTER TABLE platform.delivery ADD COLUMN error text CHECK (length(error) <= 300);
COMMENT ON COLUMN platform.delivery.error IS
  'what went wrong here, at its last claim or record; what a provider said stands with its attempt';
GRANT UPDATE (error) ON platform.delivery TO consumer;

-- queued -> held is new: it fails before anybody could be called.
DROP TRIGGER delivery_transition ON platform.delivery;
CREATE TRIGGER delivery_transition BEFORE UPDATE OF state ON platform.delivery
  FOR EACH ROW WHEN (NOT (
    NEW.state = OLD.state
    OR OLD.state = 'queued' AND NEW.state IN ('sending', 'sent', 'suppressed', 'expired', 'held')
    OR OLD.state = 'sending' AND NEW.state IN ('queued', 'sent', 'failed', 'suppressed', 'expired', 'held')
    OR OLD.state = 'held' AND NEW.state IN ('queued', 'sent', 'suppressed')
  )) EXECUTE FUNCTION platform.refuse_delivery_transition();

-- Not validated: every row there is satisfied the narrower one, and nobody waits while they are read again.
ALTER TABLE platform.nudge DROP CONSTRAINT nudge_reason_check;
ALTER TABLE platform.nudge ADD CONSTRAINT nudge_reason_check CHECK (
  reason IN ('superseded', 'ended', 'restarted', 'nobody', 'suppressed', 'kind_removed')) NOT VALID;

-- A tenant's own views show the new column.
SELECT platform.create_tenant_schema(t.tenant_id) FROM platform.tenant t WHERE t.schema_name IS NOT NULL;
