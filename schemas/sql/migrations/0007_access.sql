-- The access matrix: who sees which rows (policies), who may do what to them (grants). Nothing is granted on a partition:
-- a policy on the root does not guard its leaves.
--
-- `granted`: a domain or analyst role sees the tenants granted to it. app.tenant_id narrows that and can never widen it;
-- it does so in one place, the policy of tenant_grant, which every other policy reads through. A pooled connection's
-- setting reverts to '', hence NULLIF.

CREATE POLICY granted ON platform.tenant_grant FOR SELECT TO domain, analyst USING (
  role = current_user
  AND (NULLIF(current_setting('app.tenant_id', true), '') IS NULL
       OR tenant_id = NULLIF(current_setting('app.tenant_id', true), '')));

CREATE POLICY granted ON platform.tenant FOR SELECT TO domain, analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = tenant.tenant_id));
CREATE POLICY granted ON platform.import FOR SELECT TO analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = import.tenant_id));
CREATE POLICY granted ON platform.outbox FOR SELECT TO domain, analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = outbox.tenant_id));
CREATE POLICY granted ON platform.decision FOR SELECT TO domain, analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = decision.tenant_id));
CREATE POLICY granted ON platform.journey_progress FOR SELECT TO domain, analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = journey_progress.tenant_id));
CREATE POLICY granted ON platform.nudge FOR SELECT TO domain, analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = nudge.tenant_id));
CREATE POLICY granted ON platform.dead_letter FOR SELECT TO analyst USING (
  EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = dead_letter.tenant_id));

-- What a domain role inserts. A tenant that is unknown and one that belongs to somebody else are refused alike, so that
-- nobody can probe for the names of tenants. CASE, because it alone promises that a refusal is not evaluated in vain.
CREATE POLICY granted_insert ON platform.outbox FOR INSERT TO domain WITH CHECK (
  CASE WHEN EXISTS (SELECT FROM platform.tenant_grant g WHERE g.role = current_user AND g.tenant_id = outbox.tenant_id)
    THEN true
    ELSE platform.refuse('TO001', format('tenant "%s" is unknown, or not granted to role "%s"', tenant_id, current_user),
      'An operator creates tenants and grants them to roles; app.tenant_id narrows a session to one of them.') END);
CREATE POLICY events_only ON platform.outbox AS RESTRICTIVE FOR INSERT TO domain WITH CHECK (
  CASE WHEN topic = 'events.' || product THEN true
    ELSE platform.refuse('TO003', format('role "%s" writes to topic "events.%s" only, not "%s"', current_user, product, topic),
      'Leave topic out.') END);

-- What is asked of every fact, whoever records it: domain roles and, for imports, the owner.
CREATE POLICY owner_knows_tenant ON platform.outbox AS RESTRICTIVE FOR INSERT TO CURRENT_USER WITH CHECK (
  CASE WHEN EXISTS (SELECT FROM platform.tenant t WHERE t.tenant_id = outbox.tenant_id) THEN true
    ELSE platform.refuse('TO001', format('tenant "%s" is unknown', tenant_id), '`tellonce tenant create` makes one.') END);
CREATE POLICY known_product ON platform.outbox AS RESTRICTIVE FOR INSERT TO domain, CURRENT_USER WITH CHECK (
  CASE WHEN topic NOT LIKE 'events.%' OR EXISTS (SELECT FROM platform.product p WHERE p.product = outbox.product) THEN true
    ELSE platform.refuse('TO002', format('product "%s" is not registered', product),
      'A product is a folder of contracts; an operator registers it with `tellonce migrate`.') END);

-- Consumers see every tenant.
CREATE POLICY consumer_all ON platform.tenant FOR SELECT TO consumer USING (true);
CREATE POLICY consumer_all ON platform.import FOR SELECT TO consumer USING (true);
CREATE POLICY consumer_all ON platform.outbox TO consumer USING (true) WITH CHECK (true);
CREATE POLICY consumer_all ON platform.decision TO consumer USING (true) WITH CHECK (true);
CREATE POLICY consumer_all ON platform.journey_progress TO consumer USING (true) WITH CHECK (true);
CREATE POLICY consumer_all ON platform.nudge TO consumer USING (true) WITH CHECK (true);
CREATE POLICY consumer_all ON platform.dead_letter TO consumer USING (true) WITH CHECK (true);

-- Debezium reads the table's shape; what it streams it takes from the WAL.
CREATE POLICY connect_read ON platform.outbox FOR SELECT TO connect USING (true);

GRANT USAGE ON SCHEMA platform TO domain, consumer, gateway, analyst, connect;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA platform FROM PUBLIC;

-- Configuration, for everybody who decides anything.
GRANT SELECT ON platform.installation, platform.product, platform.clock TO domain, consumer, analyst;
GRANT EXECUTE ON FUNCTION platform.clock_now(text), platform.id_floor(timestamptz), platform.day_floor(date),
  platform.day_floor(timestamptz) TO domain, consumer, analyst;

-- What the trigger and the policies of the outbox call in the name of whoever inserts.
GRANT EXECUTE ON FUNCTION platform.is_recorded(uuid, text, text, text, text, text, bytea),
  platform.refuse_event(platform.outbox), platform.refuse(text, text, text) TO domain, consumer;

-- domain: append, and look at what became of it. recorded_at, position and message_key are the database's.
GRANT SELECT ON platform.tenant, platform.tenant_grant TO domain;
GRANT SELECT ON platform.outbox, platform.decision, platform.journey_progress, platform.nudge TO domain;
GRANT INSERT (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, occurred_at,
  traceparent) ON platform.outbox TO domain;
GRANT EXECUTE ON FUNCTION platform.append(text, text, text, text, jsonb, timestamptz, uuid, text) TO domain;

-- analyst: reads.
GRANT SELECT ON platform.tenant, platform.tenant_grant, platform.import, platform.outbox, platform.decision,
  platform.journey_progress, platform.nudge, platform.dead_letter, platform.consumer_progress, platform.group_subscription
  TO analyst;
GRANT EXECUTE ON FUNCTION platform.undecided(text, text, text, text), platform.undecided_events(text, text, text, text)
  TO analyst;

-- gateway: nothing yet but the time; it will append feedback.
GRANT SELECT ON platform.clock TO gateway;

-- connect: what the connector reads beside the WAL.
GRANT SELECT ON platform.outbox TO connect;

-- consumer: the loop, the groups, the clock and its upkeep. DELETE on the outbox is for platform.resend.
GRANT SELECT ON platform.tenant, platform.import TO consumer;
GRANT SELECT, DELETE ON platform.outbox TO consumer;
GRANT INSERT (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type, payload, occurred_at,
  recorded_at, traceparent) ON platform.outbox TO consumer;
GRANT SELECT, INSERT ON platform.decision TO consumer;
GRANT SELECT, INSERT, UPDATE ON platform.consumer_progress, platform.journey_progress TO consumer;
GRANT SELECT, INSERT, DELETE ON platform.group_subscription TO consumer;
GRANT SELECT, INSERT ON platform.nudge, platform.dead_letter TO consumer;
GRANT UPDATE (state, due_at, superseded_by, cancelled_by, reason, updated_at) ON platform.nudge TO consumer;
GRANT UPDATE (state, closed_at, closed_by, note) ON platform.dead_letter TO consumer;
GRANT EXECUTE ON FUNCTION platform.undecided(text, text, text, text), platform.undecided_events(text, text, text, text),
  platform.resend(uuid[], text[]), platform.ensure_partitions(date, integer),
  platform.partition_gaps(integer, timestamptz), platform.expired_days(timestamptz),
  platform.drop_day(date, timestamptz), platform.is_partition(regclass, date), platform.partition_name(regclass, date)
  TO consumer;
