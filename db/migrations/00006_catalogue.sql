-- The data of event types, payload versions, numbers of a tenant's attempts, and the outbox of products that share
-- this server and emit in their own transactions.

-- +goose Up

-- schema and example are JSON as it was written. versions is a JSON object: the differences of payload versions
-- (domain/catalogue).
ALTER TABLE event_types
	ADD COLUMN type_group   text NOT NULL DEFAULT '',
	ADD COLUMN schema       text,
	ADD COLUMN example      text,
	ADD COLUMN schema_check text NOT NULL DEFAULT 'off' CHECK (schema_check IN ('off', 'warn', 'enforce')),
	ADD COLUMN deprecated   boolean NOT NULL DEFAULT false,
	ADD COLUMN versions     text,
	ADD COLUMN updated_at   timestamptz NOT NULL DEFAULT now();

-- An endpoint's payload version is part of its routes, and stored with their revisions. The endpoint is updated before
-- its revision is inserted.
ALTER TABLE endpoint_revisions ADD COLUMN payload_version text;
-- +goose StatementBegin
CREATE FUNCTION posthorn.revision_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.payload_version := (SELECT e.payload_version FROM endpoints e WHERE e.tenant_id = NEW.tenant_id AND e.id = NEW.endpoint_id);
	RETURN NEW;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.revision_version() FROM PUBLIC;
CREATE TRIGGER revision_version BEFORE INSERT ON endpoint_revisions FOR EACH ROW EXECUTE FUNCTION posthorn.revision_version();

-- The attempts of a tenant's endpoints that the ledger holds and no job has folded into the roll-ups yet: seconds' worth. The
-- ledger holds those of all tenants; a tenant is told its own alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.unfolded_stats(tenant uuid)
RETURNS TABLE (endpoint_id uuid, event_type text, minute timestamptz, kind smallint, n bigint, us bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, u.type, to_timestamp(u.minute::bigint * 60), u.kind, u.n::bigint, u.us
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_type), unnest(l.stat_minute),
		unnest(l.stat_kind), unnest(l.stat_count), unnest(l.stat_us)) AS u(endpoint, type, minute, kind, n, us)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_stats.tenant
		AND (unfolded_stats.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.unfolded_stats(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_stats(uuid) TO posthorn_tenant, posthorn_worker, posthorn_console;
GRANT SELECT ON ledger, endpoints TO posthorn_lookup;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.unfolded_stats(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- The outbox. A product calls posthorn.emit in the transaction of its own change; the relay (worker/outbox.go) routes
-- committed rows and deletes them. The id is the event's, drawn once: a relay that dies between the two does not store
-- twice.
CREATE TABLE outbox (
	id              uuid PRIMARY KEY,
	tenant_id       uuid NOT NULL,
	type            text NOT NULL,
	data            bytea NOT NULL,
	key             text,
	channels        text[],
	version         text,
	occurred_at     timestamptz,
	deliver_at      timestamptz,
	idempotency_key text,
	tries           int NOT NULL DEFAULT 0,
	due_at          timestamptz NOT NULL DEFAULT 'epoch'
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
SELECT posthorn.guard('outbox');
GRANT INSERT ON outbox TO posthorn_lookup;
GRANT SELECT, UPDATE, DELETE ON outbox TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox TO posthorn_console;

-- Emissions in SQL that can't become an event, with the reason that the API would have given. For operators.
CREATE TABLE outbox_rejected (
	id              uuid PRIMARY KEY,
	tenant_id       uuid NOT NULL,
	type            text NOT NULL,
	data            bytea NOT NULL,
	key             text,
	channels        text[],
	version         text,
	occurred_at     timestamptz,
	deliver_at      timestamptz,
	idempotency_key text,
	code            text NOT NULL,
	detail          text NOT NULL,
	rejected_at     timestamptz NOT NULL DEFAULT now()
);
SELECT posthorn.guard('outbox_rejected');
GRANT SELECT, INSERT ON outbox_rejected TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_rejected TO posthorn_console;

-- The role that a product's own role is granted: it may emit for any tenant, and nothing else.
-- +goose StatementBegin
DO $$ BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'posthorn_emitter') THEN
		BEGIN
			CREATE ROLE posthorn_emitter NOLOGIN NOINHERIT;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
			NULL; -- another database of this server is being migrated at the same moment
		END;
	END IF;
END $$;
-- +goose StatementEnd
GRANT USAGE ON SCHEMA posthorn TO posthorn_emitter;

-- A UUIDv7 (RFC 9562) of this moment: milliseconds, then the microseconds within as the 12 bits that method 3 of its section
-- 6.2 allows, so that ids of one transaction follow its order.
-- +goose StatementBegin
CREATE FUNCTION posthorn.new_id() RETURNS uuid LANGUAGE sql VOLATILE
RETURN (SELECT (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
	FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS moment);
-- +goose StatementEnd

-- Ids as people see them: a prefix and 26 digits of Crockford's base32.
-- +goose StatementBegin
CREATE FUNCTION posthorn.outer_id(prefix text, id uuid) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	bits bit varying := B'00' || ('x' || replace(id::text, '-', ''))::bit(128);
	out text := '';
BEGIN
	FOR i IN 0..25 LOOP
		out := out || substr('0123456789abcdefghjkmnpqrstvwxyz', substring(bits FROM i * 5 + 1 FOR 5)::bit(5)::int + 1, 1);
	END LOOP;
	RETURN prefix || '_' || out;
END $$;
-- +goose StatementEnd

-- The id of an outer id, or of a UUID in PostgreSQL's form; null where the text is neither.
-- +goose StatementBegin
CREATE FUNCTION posthorn.inner_id(prefix text, given text) RETURNS uuid LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	bits bit varying := B'';
BEGIN
	IF given ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
		RETURN given::uuid;
	END IF;
	IF given !~ ('^' || prefix || '_[0-7][0-9a-hjkmnp-tv-z]{25}$') THEN
		RETURN NULL;
	END IF;
	FOR i IN length(prefix) + 2..length(given) LOOP
		bits := bits || (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(given, i, 1)) - 1)::bit(5);
	END LOOP;
	RETURN (SELECT string_agg(to_hex(substring(bits FROM 3 + n * 4 FOR 4)::bit(4)::int), '' ORDER BY n) FROM generate_series(0, 31) n)::uuid;
END $$;
-- +goose StatementEnd

-- Emits an event when, and only when, the caller's transaction commits. tenant is a tenant's id (ten_...). data is kept as it
-- is written. The answer is the event's id (evt_...). What can be checked here is refused here, so that the caller hears of
-- it: an unknown or suspended tenant, malformed names, too much data. Checks of the tenant's catalogue wait for the relay.
-- +goose StatementBegin
CREATE FUNCTION posthorn.emit(tenant text, type text, data json, key text DEFAULT NULL, channels text[] DEFAULT NULL,
	idempotency_key text DEFAULT NULL, version text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL, deliver_at timestamptz DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	to_tenant uuid := posthorn.inner_id('ten', emit.tenant);
	is_in text := (SELECT t.state FROM tenants t WHERE t.id = to_tenant);
	event uuid := posthorn.new_id();
	wrong text;
	mend text := '';
BEGIN
	CASE
	WHEN is_in IS NULL THEN
		wrong := 'there is no such tenant'; mend := 'Give the tenant''s id, such as ten_01jd0000000000000000000000.';
	WHEN is_in <> 'active' THEN
		wrong := 'the tenant is suspended'; mend := 'Resume it first.';
	WHEN emit.type IS NULL OR length(emit.type) > 128 OR emit.type !~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$' THEN
		wrong := 'the type is malformed'; mend := 'A type has 1 to 128 letters, digits, hyphens and underscores, in parts joined by full stops.';
	WHEN emit.data IS NULL THEN
		wrong := 'there is no data'; mend := 'Give JSON, such as ''{}'' or ''null''::json.';
	WHEN octet_length(emit.data::text) > 262144 THEN
		wrong := format('the data has %s bytes', octet_length(emit.data::text)); mend := 'At most 262144 are allowed. Send a reference to the rest instead.';
	WHEN octet_length(emit.key) NOT BETWEEN 1 AND 128 THEN
		wrong := 'the key is malformed'; mend := 'A key has 1 to 128 bytes.';
	WHEN cardinality(emit.channels) > 10 OR EXISTS (SELECT 1 FROM unnest(emit.channels) AS c(name) WHERE c.name IS NULL OR c.name !~ '^[A-Za-z0-9._:/@-]{1,128}$') THEN
		wrong := 'the channels are malformed'; mend := 'At most 10, each of 1 to 128 letters, digits and the characters . _ - : / @';
	WHEN emit.idempotency_key !~ '^[!-~]{1,255}$' THEN
		wrong := 'the idempotency_key is malformed'; mend := 'It has 1 to 255 visible ASCII characters.';
	WHEN emit.version !~ '^[A-Za-z0-9._-]{1,64}$' THEN
		wrong := 'the version is malformed'; mend := 'It has 1 to 64 letters, digits and the characters . _ -';
	WHEN emit.occurred_at IS NOT NULL AND (NOT isfinite(emit.occurred_at) OR emit.occurred_at NOT BETWEEN '1970-01-01Z' AND '9999-12-31Z') THEN
		wrong := 'occurred_at is out of range'; mend := 'It lies between the years 1970 and 9999.';
	WHEN emit.deliver_at > now() + interval '30 days' THEN
		wrong := 'deliver_at is out of range'; mend := 'It lies at most 30 days ahead.';
	ELSE
		INSERT INTO outbox (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key)
		VALUES (event, to_tenant, emit.type, convert_to(emit.data::text, 'UTF8'), emit.key, emit.channels, emit.version, emit.occurred_at, emit.deliver_at, emit.idempotency_key);
		PERFORM pg_notify('posthorn_outbox', '');
		RETURN posthorn.outer_id('evt', event);
	END CASE;
	RAISE EXCEPTION 'posthorn.emit: %', wrong USING ERRCODE = 'invalid_parameter_value', HINT = mend;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.new_id(), posthorn.outer_id(text, uuid), posthorn.inner_id(text, text),
	posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.new_id(), posthorn.outer_id(text, uuid), posthorn.inner_id(text, text) TO posthorn_lookup;
GRANT EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) TO posthorn_emitter, posthorn_console;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

CREATE INDEX dead_letters_recent ON dead_letters (tenant_id, failed_at);

-- +goose Down

DROP INDEX dead_letters_recent;
DROP FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz);
DROP FUNCTION posthorn.inner_id(text, text);
DROP FUNCTION posthorn.outer_id(text, uuid);
DROP FUNCTION posthorn.new_id();
DROP TABLE outbox_rejected, outbox;
REVOKE USAGE ON SCHEMA posthorn FROM posthorn_emitter;
REVOKE SELECT ON ledger, endpoints FROM posthorn_lookup;
DROP FUNCTION posthorn.unfolded_stats(uuid);
DROP TRIGGER revision_version ON endpoint_revisions;
DROP FUNCTION posthorn.revision_version();
ALTER TABLE endpoint_revisions DROP COLUMN payload_version;
ALTER TABLE event_types DROP COLUMN type_group, DROP COLUMN schema, DROP COLUMN example, DROP COLUMN schema_check, DROP COLUMN deprecated,
	DROP COLUMN versions, DROP COLUMN updated_at;
