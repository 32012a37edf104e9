-- Emits an event when the caller's transaction commits. tenant is a tenant's id (ten_...) or external id. data is
-- stored as it is written. Returns the event's id (evt_...). The function rejects an unknown or suspended tenant,
-- malformed names, and too much data, so that the caller sees the error. The relay checks the tenant's catalogue.
SET LOCAL ROLE posthorn_lookup;
DROP FUNCTION IF EXISTS posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text);
CREATE OR REPLACE FUNCTION posthorn.emit(tenant text, type text, data json, key text DEFAULT NULL, channels text[] DEFAULT NULL,
	idempotency_key text DEFAULT NULL, version text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL, deliver_at timestamptz DEFAULT NULL, event_id text DEFAULT NULL,
	expires_in int DEFAULT NULL, expires_at timestamptz DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	to_tenant uuid := coalesce(posthorn.inner_id('ten', emit.tenant), posthorn.find_tenant(emit.tenant));
	is_in text := (SELECT t.state FROM tenants t WHERE t.id = to_tenant AND t.state <> 'deleted');
	event uuid := posthorn.new_id();
	first uuid;
	wrong text;
	fix text := '';
BEGIN
	CASE
	WHEN is_in IS NULL THEN
		wrong := 'there is no such tenant'; fix := 'Give the tenant''s id, such as ten_01jd0000000000000000000000, or its external id.';
	WHEN is_in <> 'active' THEN
		wrong := 'the tenant is suspended'; fix := 'Resume it first.';
	WHEN emit.type IS NULL OR length(emit.type) > 128 OR emit.type !~ '^[A-Za-z0-9_][A-Za-z0-9_-]*([.][A-Za-z0-9_-]+)*$' THEN
		wrong := 'the type is malformed'; fix := 'A type has 1 to 128 letters, digits, hyphens and underscores, in parts joined by full stops.';
	WHEN emit.type ~ '^(endpoint|posthorn)[.]' AND current_setting('role') <> 'posthorn_worker' THEN -- who tells the platform's tenant of notices
		wrong := 'the type is reserved'; fix := 'Types that begin with endpoint. or posthorn. are Posthorn''s own. Give the type another name.';
	WHEN emit.data IS NULL THEN
		wrong := 'there is no data'; fix := 'Give JSON, such as ''{}'' or ''null''::json.';
	WHEN octet_length(emit.data::text) > 262144 THEN
		wrong := format('the data has %s bytes', octet_length(emit.data::text)); fix := 'At most 262144 are allowed. Send a reference to the rest instead.';
	WHEN octet_length(emit.key) NOT BETWEEN 1 AND 128 THEN
		wrong := 'the key is malformed'; fix := 'A key has 1 to 128 bytes.';
	WHEN cardinality(emit.channels) > 10 OR EXISTS (SELECT 1 FROM unnest(emit.channels) AS c(name) WHERE c.name IS NULL OR c.name !~ '^[A-Za-z0-9._:/@-]{1,128}$') THEN
		wrong := 'the channels are malformed'; fix := 'At most 10, each of 1 to 128 letters, digits and the characters . _ - : / @';
	WHEN emit.idempotency_key !~ '^[!-~]{1,255}$' THEN
		wrong := 'the idempotency_key is malformed'; fix := 'It has 1 to 255 visible ASCII characters.';
	WHEN emit.event_id !~ '^[!-~]+$' OR octet_length(emit.event_id) > 256 OR emit.event_id ~ '[."\\]' THEN
		wrong := 'the event_id is malformed'; fix := 'It has 1 to 256 visible ASCII characters without spaces, full stops, quotes and backslashes.';
	WHEN emit.version !~ '^[A-Za-z0-9._-]{1,64}$' THEN
		wrong := 'the version is malformed'; fix := 'It has 1 to 64 letters, digits and the characters . _ -';
	WHEN emit.occurred_at IS NOT NULL AND (NOT isfinite(emit.occurred_at) OR emit.occurred_at NOT BETWEEN '1970-01-01Z' AND '9999-12-31Z') THEN
		wrong := 'occurred_at is out of range'; fix := 'It lies between the years 1970 and 9999.';
	WHEN emit.deliver_at > now() + interval '30 days' THEN
		wrong := 'deliver_at is out of range'; fix := 'It lies at most 30 days ahead.';
	WHEN emit.expires_in NOT BETWEEN 1 AND 2592000 THEN
		wrong := 'expires_in is out of range'; fix := 'It is a number of seconds from 1 to 2592000.';
	WHEN emit.expires_in IS NOT NULL AND emit.expires_at IS NOT NULL THEN
		wrong := 'expires_in and expires_at are both given'; fix := 'Give one of them.';
	WHEN emit.expires_at IS NOT NULL AND (NOT isfinite(emit.expires_at) OR emit.expires_at NOT BETWEEN '1970-01-01Z' AND now() + interval '30 days') THEN
		wrong := 'expires_at is out of range'; fix := 'It lies at most 30 days ahead.';
	WHEN emit.expires_at <= emit.deliver_at THEN
		wrong := 'expires_at is not later than deliver_at'; fix := 'Give a later expires_at.';
	ELSE
		first := posthorn.emitted_before(to_tenant, emit.idempotency_key, emit.type, convert_to(emit.data::text, 'UTF8'), emit.key, emit.channels, emit.version,
			emit.occurred_at, emit.deliver_at, emit.event_id, emit.expires_in, emit.expires_at);
		IF first IS NOT NULL THEN
			RETURN posthorn.outer_id('evt', first);
		END IF;
		INSERT INTO outbox (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key, external_id, expires_in, expires_at)
		VALUES (event, to_tenant, emit.type, convert_to(emit.data::text, 'UTF8'), emit.key, emit.channels, emit.version, emit.occurred_at, emit.deliver_at, emit.idempotency_key, emit.event_id,
			emit.expires_in, emit.expires_at);
		PERFORM pg_notify('posthorn_outbox', '');
		RETURN posthorn.outer_id('evt', event);
	END CASE;
	RAISE EXCEPTION 'posthorn.emit: %', wrong USING ERRCODE = 'invalid_parameter_value', HINT = fix;
END $$;
REVOKE ALL ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text, int, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text, int, timestamptz) TO posthorn_console, posthorn_emitter, posthorn_worker;
-- With the parameters that older versions have. It has no defaults, so that a call that leaves some out means the other.
CREATE OR REPLACE FUNCTION posthorn.emit(tenant text, type text, data json, key text, channels text[], idempotency_key text, version text, occurred_at timestamptz,
	deliver_at timestamptz, event_id text)
RETURNS text LANGUAGE sql VOLATILE SET search_path = posthorn, pg_temp AS $$
	SELECT posthorn.emit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL::int, NULL::timestamptz)
$$;
REVOKE ALL ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text) TO posthorn_console, posthorn_emitter, posthorn_worker;
