-- The domain's door: what is admitted to the stream, how SQL users append, how a lost record is sent again.
-- Refusals use SQLSTATE class TO, which no Postgres uses; connectors.postgres.errors names each of them.

-- Judges one event on its way in. SECURITY INVOKER: a role sees the tenants granted to it, so a tenant that is unknown
-- and one that belongs to somebody else are refused alike, and nobody can probe for the names of tenants.
-- A generic plan, because a custom one prunes the day partitions anew for every row: 100 µs of it instead of 8.
CREATE FUNCTION platform.outbox_admit() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  payload_limit integer;
  horizon interval;
  tenant_known boolean;
  product_known boolean;
  is_object boolean := false;
  earlier record;
BEGIN
  SELECT i.payload_limit, i.horizon,
         EXISTS (SELECT FROM platform.tenant t WHERE t.tenant_id = NEW.tenant_id),
         EXISTS (SELECT FROM platform.product p WHERE p.product = NEW.product)
    INTO payload_limit, horizon, tenant_known, product_known
    FROM platform.installation i;

  IF NOT tenant_known THEN
    RAISE EXCEPTION 'tenant "%" is unknown, or not granted to role "%"', NEW.tenant_id, current_user
      USING ERRCODE = 'TO001', HINT = CASE NULLIF(current_setting('app.tenant_id', true), '') = NEW.tenant_id
        WHEN false THEN format('This session is narrowed to tenant "%s" by app.tenant_id.', current_setting('app.tenant_id'))
        ELSE 'An operator creates tenants and grants them to roles.' END;
  END IF;
  IF NOT product_known THEN
    RAISE EXCEPTION 'product "%" is not registered', NEW.product
      USING ERRCODE = 'TO002', HINT = 'Products are folders of contracts; an operator registers them with `tellonce migrate`.';
  END IF;
  IF NEW.topic IS NULL THEN
    NEW.topic := 'events.' || NEW.product;
  ELSIF NEW.topic <> 'events.' || NEW.product THEN
    RAISE EXCEPTION 'an event of product "%" goes to topic "events.%", not "%"', NEW.product, NEW.product, NEW.topic
      USING ERRCODE = 'TO003', HINT = 'Leave topic out.';
  END IF;
  IF NEW.key_id IS NULL THEN
    NEW.key_id := NEW.subject_id;
  ELSIF NEW.key_id <> NEW.subject_id THEN
    RAISE EXCEPTION 'an event is ordered by its subject "%", not by "%"', NEW.subject_id, NEW.key_id
      USING ERRCODE = 'TO004', HINT = 'Leave key_id out.';
  END IF;
  IF NEW.occurred_at IS NULL THEN
    NEW.occurred_at := NEW.recorded_at;
  END IF;

  IF uuid_extract_version(NEW.event_id) IS DISTINCT FROM 7 THEN
    RAISE EXCEPTION 'event_id % is not a UUID version 7', NEW.event_id
      USING ERRCODE = 'TO005', HINT = 'Leave event_id out, or use uuidv7().';
  END IF;
  IF uuid_extract_timestamp(NEW.event_id) < NEW.recorded_at - horizon THEN
    RAISE EXCEPTION 'event_id % is of %, longer ago than %', NEW.event_id, uuid_extract_timestamp(NEW.event_id), horizon
      USING ERRCODE = 'TO005', HINT = 'So late a retry cannot be told from a new event. When it happened belongs in occurred_at.';
  END IF;

  IF octet_length(NEW.payload) > payload_limit THEN
    RAISE EXCEPTION 'a payload of % bytes is over the limit of %', octet_length(NEW.payload), payload_limit
      USING ERRCODE = 'TO006', HINT = 'An event carries what was decided on, and ids of the rest.';
  END IF;
  IF NEW.content_type LIKE 'application/json%' AND NEW.payload IS NOT NULL THEN
    BEGIN
      is_object := convert_from(NEW.payload, 'UTF8') IS JSON OBJECT;
    EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
      is_object := false;
    END;
    IF NOT is_object THEN
      RAISE EXCEPTION 'the payload is not a JSON object in UTF-8' USING ERRCODE = 'TO007',
        HINT = 'Other formats name theirs in content_type, such as avro/binary.';
    END IF;
  END IF;

  -- A retried transaction changes nothing. Two at the same moment meet at the primary key: 23505, and the retry of
  -- that one ends here. When it happened and who traced it may differ between tries; the fact itself may not.
  SELECT o.product, o.subject_id, o.event_type, o.content_type, o.payload INTO earlier
    FROM platform.outbox o
   WHERE o.event_id = NEW.event_id AND o.tenant_id = NEW.tenant_id;
  IF FOUND THEN
    IF earlier IS DISTINCT FROM (NEW.product, NEW.subject_id, NEW.event_type, NEW.content_type, NEW.payload) THEN
      RAISE EXCEPTION 'event % is recorded already, with other content', NEW.event_id
        USING ERRCODE = 'TO008', HINT = 'An event never changes. A further fact is a further event with its own id.';
    END IF;
    RETURN NULL;
  END IF;
  RETURN NEW;
END
$$;

-- A row whose recorded_at is given rather than taken now was admitted before and is being resent: only roles that may
-- name that column can do so, and for domain roles the column grants say no. Whatever is not a fact (timers, deliveries)
-- is written by our consumers, who pay nothing here.
CREATE TRIGGER outbox_admit BEFORE INSERT ON platform.outbox
  FOR EACH ROW WHEN ((NEW.topic IS NULL OR NEW.topic LIKE 'events.%') AND NEW.recorded_at = now())
  EXECUTE FUNCTION platform.outbox_admit();

CREATE FUNCTION platform.append(
  tenant text, product text, subject text, type text, payload jsonb,
  occurred_at timestamptz DEFAULT NULL, event_id uuid DEFAULT NULL, traceparent text DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  id uuid := coalesce(append.event_id, uuidv7());
BEGIN
  INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, event_type, payload, occurred_at, traceparent)
  VALUES (id, append.tenant, append.product, append.subject, append.type,
          convert_to(append.payload::text, 'UTF8'), append.occurred_at, append.traceparent);
  RETURN id;
END
$$;
COMMENT ON FUNCTION platform.append IS
  'records that something happened, in the caller''s transaction; the same event_id again changes nothing; SQLSTATE class TO refuses';

-- The one way a record is sent again: only inserts are captured, so delete + insert streams the same record once more, at
-- a new position with its old id. One statement, so nobody ever sees the row missing; in the old order, per subject too.
CREATE FUNCTION platform.resend(event_ids uuid[], tenant_ids text[]) RETURNS bigint LANGUAGE sql AS $$
  WITH lost AS (
    DELETE FROM platform.outbox o
     USING unnest(event_ids, tenant_ids) AS wanted (event_id, tenant_id)
     WHERE o.event_id = wanted.event_id AND o.tenant_id = wanted.tenant_id
    RETURNING o.*
  ), again AS (
    INSERT INTO platform.outbox (event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type,
                                 payload, occurred_at, recorded_at, traceparent)
    SELECT event_id, tenant_id, product, subject_id, key_id, topic, event_type, content_type,
           payload, occurred_at, recorded_at, traceparent
      FROM lost ORDER BY lost.position
    RETURNING 1
  )
  SELECT count(*) FROM again
$$;
COMMENT ON FUNCTION platform.resend IS 'returns how many records it sent again; those that do not exist are not counted';
