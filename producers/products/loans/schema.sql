-- The loan service's own tables, in its own schema: the platform knows nothing of them. Every block may run again.

-- name: schema
CREATE SCHEMA IF NOT EXISTS loans

-- name: state
-- open ──withdraw──► withdrawn ──reapply──► open      open ──sanction──► sanctioned ──disburse──► disbursed
DO $$
BEGIN
  CREATE TYPE loans.application_state AS ENUM ('open', 'withdrawn', 'sanctioned', 'disbursed');
EXCEPTION WHEN duplicate_object THEN NULL;
END
$$

-- name: application
CREATE TABLE IF NOT EXISTS loans.application (
    tenant_id text NOT NULL,
    lead_id text NOT NULL,
    applicant_id text NOT NULL,
    state loans.application_state NOT NULL DEFAULT 'open',
    attempt integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    phone text,
    phone_verified boolean NOT NULL DEFAULT false,
    credit_score integer CHECK (credit_score BETWEEN 300 AND 900),
    savings_options integer CHECK (savings_options >= 0),
    offers_seen integer CHECK (offers_seen >= 0),
    offer_id text,
    amount bigint CHECK (amount > 0),
    advisor_id text,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, lead_id)
)

-- name: rows
-- The same grants that open the outbox open these rows: one tenant's service never sees another's applicants.
ALTER TABLE loans.application ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS granted ON loans.application;
CREATE POLICY granted ON loans.application TO loans_service USING (
    EXISTS (
        SELECT FROM platform.tenant_grant AS g
        WHERE g.role = current_user AND g.tenant_id = application.tenant_id
    )
)

-- name: access
GRANT USAGE ON SCHEMA loans TO loans_service;
GRANT SELECT, INSERT, UPDATE ON loans.application TO loans_service
