-- What the clock keeps between rounds, because any clock may do the next one; and what an import has to remember.

CREATE TABLE platform.reconciler (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  slot_txns bigint,
  full_owed boolean NOT NULL DEFAULT false,
  round_at timestamptz,
  answered_at timestamptz,
  days_at timestamptz,
  full_at timestamptz,
  undecided integer NOT NULL DEFAULT 0,
  lost bigint NOT NULL DEFAULT 0,
  unanswered text[] NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE platform.reconciler IS 'how the last round ended; every instant in it is real time';
COMMENT ON COLUMN platform.reconciler.slot_txns IS
  'transactions the replication slot had decoded: when they fall, the slot was recreated';
COMMENT ON COLUMN platform.reconciler.answered_at IS 'the last round with a full verdict; old is an alarm';
COMMENT ON COLUMN platform.reconciler.lost IS 'rows found lost, ever';
INSERT INTO platform.reconciler DEFAULT VALUES;

CREATE TABLE platform.resend_count (
  event_id uuid NOT NULL,
  tenant_id text NOT NULL,
  group_name text NOT NULL,
  resends integer NOT NULL CHECK (resends > 0),
  last_at timestamptz NOT NULL,
  PRIMARY KEY (event_id, tenant_id, group_name)
);
COMMENT ON TABLE platform.resend_count IS
  'how often a lost record was sent again for a group that lacks it; forgotten once the group has decided';
SELECT platform.guard_rows('platform.resend_count');
CREATE POLICY consumer_all ON platform.resend_count TO consumer USING (true) WITH CHECK (true);

GRANT SELECT ON platform.reconciler, platform.resend_count TO consumer, analyst;
GRANT UPDATE ON platform.reconciler TO consumer;
GRANT INSERT, UPDATE, DELETE ON platform.resend_count TO consumer;
CREATE POLICY granted ON platform.resend_count FOR SELECT TO analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = resend_count.tenant_id));

ALTER TABLE platform.import ADD COLUMN sorted_from bigint NOT NULL DEFAULT 0 CHECK (sorted_from BETWEEN 0 AND rows_done);
ALTER TABLE platform.import ADD COLUMN digest text CHECK (digest ~ '^[0-9a-f]{64}$');
COMMENT ON COLUMN platform.import.sorted_from IS
  'rows before this one went in with an earlier part of the log; the part under way is sorted by time from here';
COMMENT ON COLUMN platform.import.digest IS 'SHA-256 of the first rows_total rows: another log under this id is refused';
