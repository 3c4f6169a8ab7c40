-- Journeys: how far a subject has come, and the one nudge that may be under way.

CREATE TABLE platform.journey_progress (
  tenant_id text NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL,
  reached text[] NOT NULL DEFAULT '{}',
  epoch_began_at timestamptz,
  ended_at timestamptz,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, product, subject_id)
);
COMMENT ON COLUMN platform.journey_progress.reached IS
  'names of the steps reached in this epoch; their rank is looked up in today''s list, so a new step re-ranks history for free';
COMMENT ON COLUMN platform.journey_progress.epoch_began_at IS 'null in the first epoch';
SELECT platform.guard_rows('platform.journey_progress');

-- scheduled ──due, past complete──► pending ──first claim sends──► sent
--     └──────────────┬──────────────────┘
--          superseded, ended, restarted, nobody, suppressed
--                    ▼
--                cancelled
CREATE TYPE platform.nudge_state AS ENUM ('scheduled', 'pending', 'sent', 'cancelled');

CREATE TABLE platform.nudge (
  nudge_id uuid NOT NULL CHECK (coalesce(uuid_extract_version(nudge_id), 0) = 8),
  tenant_id text NOT NULL,
  product text NOT NULL,
  subject_id text NOT NULL,
  kind text NOT NULL,
  step text NOT NULL,
  event_id uuid NOT NULL,
  state platform.nudge_state NOT NULL DEFAULT 'scheduled',
  due_at timestamptz NOT NULL CHECK (isfinite(due_at)),
  superseded_by uuid,
  cancelled_by uuid,
  reason text CHECK (reason IN ('superseded', 'ended', 'restarted', 'nobody', 'suppressed')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (nudge_id, tenant_id),
  CONSTRAINT nudge_reason_when_cancelled CHECK ((state = 'cancelled') = (reason IS NOT NULL)),
  CONSTRAINT nudge_successor_when_superseded CHECK (superseded_by IS NULL OR reason = 'superseded')
);
COMMENT ON COLUMN platform.nudge.event_id IS 'the event that reached the step';
COMMENT ON COLUMN platform.nudge.superseded_by IS 'the successor; null when the superseding step was immediate';
COMMENT ON COLUMN platform.nudge.cancelled_by IS 'the event that cancelled it';
SELECT platform.guard_rows('platform.nudge');

-- The invariant the whole of supersession rests on.
CREATE UNIQUE INDEX nudge_one_live_per_lead ON platform.nudge (tenant_id, product, subject_id)
  WHERE state IN ('scheduled', 'pending');
CREATE INDEX nudge_due ON platform.nudge (due_at) WHERE state = 'scheduled';
CREATE INDEX nudge_history ON platform.nudge (tenant_id, product, subject_id, nudge_id);

-- Transitions are judged in WHEN, so that a legal one costs no function call.
CREATE FUNCTION platform.refuse_nudge_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'nudge % cannot go from % to %', NEW.nudge_id,
      CASE TG_OP WHEN 'INSERT' THEN 'nothing' ELSE OLD.state::text END, NEW.state
    USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
          HINT = 'A nudge begins scheduled (or cancelled, when its successor came with it); scheduled -> pending -> sent; scheduled or pending -> cancelled.';
END
$$;
-- One that was superseded within the batch that armed it is born cancelled: history is whole, and never two are live.
CREATE TRIGGER nudge_beginning BEFORE INSERT ON platform.nudge
  FOR EACH ROW WHEN (NEW.state IN ('pending', 'sent')) EXECUTE FUNCTION platform.refuse_nudge_transition();
CREATE TRIGGER nudge_transition BEFORE UPDATE OF state ON platform.nudge
  FOR EACH ROW WHEN (NOT (
    NEW.state = OLD.state
    OR OLD.state = 'scheduled' AND NEW.state IN ('pending', 'cancelled')
    OR OLD.state = 'pending' AND NEW.state IN ('sent', 'cancelled')
  )) EXECUTE FUNCTION platform.refuse_nudge_transition();
