-- The domain's door: what is admitted to the stream, how SQL users append, how a lost record is sent again.
-- Refusals use SQLSTATE class TO, which no Postgres uses; connectors.postgres.errors names each of them.

-- Three places share the work, so that a row pays for what it needs:
-- * the trigger completes a row and judges what can be judged from the row alone, without a query;
-- * the policies of 0007 judge its tenant and product, as part of the INSERT's own plan;
-- * a look-up is made only for an id that was not made in this very statement, and a limit read only for a large payload.

CREATE FUNCTION platform.refuse(code text, message text, hint text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF hint IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
  END IF;
  RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, HINT = hint;
END
$$;

-- True when the event is in the outbox with the same content, TO008 when with other content. When it happened and who
-- traced it may differ between two tries of one transaction; the fact itself may not.
-- A generic plan looks into one day; planning afresh for every row would cost several times as much. It is made once per
-- session, perhaps while today is still empty: without enable_seqscan = off it would then scan all of today for every row.
CREATE FUNCTION platform.is_recorded(
  event_id uuid, tenant_id text, product text, subject_id text, event_type text, content_type text, payload bytea
) RETURNS boolean LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  made_at timestamptz := uuid_extract_timestamp(event_id);
  same boolean;
BEGIN
  IF made_at < now() - interval '1 day' -- the least horizon there can be: spares most rows the question
     AND made_at < now() - (SELECT i.horizon FROM platform.installation i) THEN
    PERFORM platform.refuse('TO005', format('event_id %s was made %s, before the horizon of this installation', event_id, made_at),
      'So late a retry cannot be told from a new event. When something happened belongs in occurred_at.');
  END IF;
  IF NOT EXISTS (
    SELECT FROM platform.outbox o
     WHERE o.event_id = is_recorded.event_id AND o.tenant_id = is_recorded.tenant_id) THEN
    RETURN false;
  END IF;
  SELECT (o.product, o.subject_id, o.event_type, o.content_type, o.payload)
         IS NOT DISTINCT FROM (is_recorded.product, is_recorded.subject_id, is_recorded.event_type,
                               is_recorded.content_type, is_recorded.payload)
    INTO same
    FROM platform.outbox o
   WHERE o.event_id = is_recorded.event_id AND o.tenant_id = is_recorded.tenant_id;
  RETURN same OR platform.refuse('TO008', format('event %s is recorded already, with other content', event_id),
    'An event never changes. A further fact is a further event with its own id.');
END
$$;

-- Says what is wrong with a row that the trigger below found wrong.
CREATE FUNCTION platform.refuse_event(event platform.outbox) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM CASE
    WHEN event.topic <> 'events.' || event.product THEN platform.refuse('TO003',
      format('an event of product "%s" goes to topic "events.%s", not "%s"', event.product, event.product, event.topic),
      'Leave topic out.')
    WHEN event.key_id <> event.subject_id THEN platform.refuse('TO004',
      format('an event is ordered by its subject "%s", not by "%s"', event.subject_id, event.key_id), 'Leave key_id out.')
    WHEN event.subject_id = '' OR length(event.subject_id) > 128 OR strpos(event.subject_id, ':') > 0 THEN
      platform.refuse('TO004', format('"%s" is no subject id', left(event.subject_id, 130)),
        'A subject id is 1 to 128 characters without a colon.')
    WHEN uuid_extract_version(event.event_id) IS DISTINCT FROM 7 THEN platform.refuse('TO005',
      format('event_id %s is not a UUID version 7', event.event_id), 'Leave event_id out, or use uuidv7().')
    WHEN octet_length(event.payload) > (SELECT i.payload_limit FROM platform.installation i) THEN platform.refuse('TO006',
      format('a payload of %s bytes is over the limit of this installation', octet_length(event.payload)),
      'An event carries what was decided on, and ids of the rest.')
    WHEN event.event_type = '' OR length(event.event_type) > 128 OR length(event.content_type) > 128
         OR length(event.traceparent) > 128 THEN platform.refuse('TO009',
      'event_type has 1 to 128 characters, content_type and traceparent at most 128')
    WHEN NOT isfinite(event.occurred_at) THEN platform.refuse('TO009', 'occurred_at is not an instant')
  END;
END
$$;

CREATE FUNCTION platform.outbox_admit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_object boolean;
BEGIN
  NEW.topic := coalesce(NEW.topic, 'events.' || NEW.product);
  NEW.key_id := coalesce(NEW.key_id, NEW.subject_id);
  NEW.occurred_at := coalesce(NEW.occurred_at, NEW.recorded_at);
  -- One expression, because each is prepared anew in every transaction. 1024 is the least limit there can be.
  IF NEW.topic <> 'events.' || NEW.product OR NEW.key_id <> NEW.subject_id
     OR NEW.subject_id = '' OR length(NEW.subject_id) > 128 OR strpos(NEW.subject_id, ':') > 0
     OR uuid_extract_version(NEW.event_id) IS DISTINCT FROM 7 OR octet_length(NEW.payload) > 1024
     OR NEW.event_type = '' OR length(NEW.event_type) > 128 OR length(NEW.content_type) > 128
     OR length(NEW.traceparent) > 128 OR NOT isfinite(NEW.occurred_at) THEN
    PERFORM platform.refuse_event(NEW);
  END IF;
  IF NEW.content_type LIKE 'application/json%' AND NEW.payload IS NOT NULL THEN
    BEGIN
      is_object := convert_from(NEW.payload, 'UTF8') IS JSON OBJECT;
    EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
      is_object := false;
    END;
    IF NOT is_object THEN
      PERFORM platform.refuse('TO007', 'the payload is not a JSON object in UTF-8',
        'Other formats name theirs in content_type, such as avro/binary.');
    END IF;
  END IF;

  -- A retried transaction changes nothing. An id made since this statement began, to the microsecond (48 bits of
  -- milliseconds, 12 of a fraction), is the column's default and cannot be a retry, so most rows skip the look-up. Two
  -- tries at the same moment, or one id twice in one statement, meet at the primary key: 23505, and its retry ends here.
  IF uuid_extract_timestamp(NEW.event_id)
       + interval '1 millisecond' * (('x' || substr(NEW.event_id::text, 16, 3))::bit(12)::integer / 4096::float8)
       BETWEEN statement_timestamp() AND clock_timestamp() THEN
    RETURN NEW;
  END IF;
  IF platform.is_recorded(NEW.event_id, NEW.tenant_id, NEW.product, NEW.subject_id, NEW.event_type, NEW.content_type,
                          NEW.payload) THEN
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
