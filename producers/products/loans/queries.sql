-- name: narrow
-- This transaction is this tenant's, whatever else the role was granted.
SELECT set_config('app.tenant_id', %(tenant)s, true)

-- name: start
-- Again: the same application, unchanged.
INSERT INTO loans.application (tenant_id, lead_id, applicant_id, changed_at)
VALUES (%(tenant)s, %(lead)s, %(applicant)s, clock_timestamp())
ON CONFLICT (tenant_id, lead_id) DO NOTHING

-- name: lock
SELECT applicant_id, state::text, attempt, phone_verified, credit_score, offer_id, amount, advisor_id
FROM loans.application
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s
FOR UPDATE

-- name: read
SELECT applicant_id, state::text, attempt, phone_verified, credit_score, offer_id, amount, advisor_id
FROM loans.application
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: verify_phone
UPDATE loans.application SET phone = %(phone)s, phone_verified = true, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: complete_credit_check
UPDATE loans.application SET credit_score = %(credit_score)s, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: explore_savings
UPDATE loans.application SET savings_options = %(savings_options)s, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: view_offers
UPDATE loans.application SET offers_seen = %(offers)s, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: submit_offer
UPDATE loans.application SET offer_id = %(offer_id)s, amount = %(amount)s, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: assign_advisor
UPDATE loans.application SET advisor_id = %(advisor)s, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: move
UPDATE loans.application SET state = %(state)s::loans.application_state, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: reapply
-- A further attempt begins afresh; who advises the applicant stays.
UPDATE loans.application
SET
    state = 'open', attempt = attempt + 1, credit_score = NULL, savings_options = NULL, offers_seen = NULL,
    offer_id = NULL, amount = NULL, changed_at = clock_timestamp()
WHERE tenant_id = %(tenant)s AND lead_id = %(lead)s

-- name: recorded
SELECT 1 FROM platform.outbox WHERE event_id = %(event_id)s AND tenant_id = %(tenant)s
