-- posthorn.emit returns the first event's id for a known idempotency key, and rejects Posthorn's own types.

-- +goose Up

GRANT SELECT ON events, outbox TO posthorn_lookup;
GRANT SELECT, DELETE ON mail_limits TO posthorn_console;

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;

-- The event that was emitted under an idempotency key, if the event at hand is the same; null where there is none, or another: the relay
-- rejects that. Whoever emits under the same key at the same time waits until this transaction has ended.
-- +goose StatementBegin
CREATE FUNCTION posthorn.emitted_before(of_tenant uuid, of_key text, of_type text, of_data bytea, order_key text, of_channels text[],
	of_version text, occurred timestamptz, deliver timestamptz)
RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	found uuid;
BEGIN
	IF of_key IS NULL THEN
		RETURN NULL;
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended(of_tenant::text || of_key, 35));
	SELECT o.id INTO found FROM outbox o
	WHERE o.tenant_id = of_tenant AND o.idempotency_key = of_key AND o.type = of_type AND o.data = of_data AND o.key IS NOT DISTINCT FROM order_key
		AND o.channels IS NOT DISTINCT FROM of_channels AND o.version IS NOT DISTINCT FROM of_version
		AND o.occurred_at IS NOT DISTINCT FROM occurred AND o.deliver_at IS NOT DISTINCT FROM deliver
	ORDER BY o.id LIMIT 1;
	IF found IS NOT NULL THEN
		RETURN found;
	END IF;
	SELECT e.id INTO found FROM idempotency_keys k
	JOIN events e ON e.tenant_id = k.tenant_id AND e.created_at BETWEEN posthorn.created_at(k.event_id) - interval '1 second'
		AND posthorn.created_at(k.event_id) + interval '1 second' AND e.id = k.event_id
	WHERE k.tenant_id = of_tenant AND k.key = of_key AND k.expires_at > now()
		AND e.type = of_type AND e.data = of_data AND e.key IS NOT DISTINCT FROM order_key
		AND coalesce(e.channels, '{}') = coalesce(of_channels, '{}') AND e.version IS NOT DISTINCT FROM of_version
		AND e.occurred_at IS NOT DISTINCT FROM occurred AND (e.deliver_at IS NOT DISTINCT FROM deliver OR deliver <= now());
	RETURN found;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.emitted_before(uuid, text, text, bytea, text, text[], text, timestamptz, timestamptz) FROM PUBLIC;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.emit(tenant text, type text, data json, key text DEFAULT NULL, channels text[] DEFAULT NULL,
	idempotency_key text DEFAULT NULL, version text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL, deliver_at timestamptz DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	to_tenant uuid := posthorn.inner_id('ten', emit.tenant);
	is_in text := (SELECT t.state FROM tenants t WHERE t.id = to_tenant AND t.state <> 'deleted');
	event uuid := posthorn.new_id();
	first uuid;
	wrong text;
	mend text := '';
BEGIN
	CASE
	WHEN is_in IS NULL THEN
		wrong := 'there is no such tenant'; mend := 'Give the tenant''s id, such as ten_01jd0000000000000000000000.';
	WHEN is_in <> 'active' THEN
		wrong := 'the tenant is suspended'; mend := 'Resume it first.';
	WHEN emit.type IS NULL OR length(emit.type) > 128 OR emit.type !~ '^[A-Za-z0-9_][A-Za-z0-9_-]*([.][A-Za-z0-9_-]+)*$' THEN
		wrong := 'the type is malformed'; mend := 'A type has 1 to 128 letters, digits, hyphens and underscores, in parts joined by full stops.';
	WHEN emit.type ~ '^(endpoint|posthorn)[.]' AND current_setting('role') <> 'posthorn_worker' THEN -- who tells the platform's tenant of notices
		wrong := 'the type is reserved'; mend := 'Types that begin with endpoint. or posthorn. are Posthorn''s own. Give the type another name.';
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
		first := posthorn.emitted_before(to_tenant, emit.idempotency_key, emit.type, convert_to(emit.data::text, 'UTF8'), emit.key, emit.channels, emit.version,
			emit.occurred_at, emit.deliver_at);
		IF first IS NOT NULL THEN
			RETURN posthorn.outer_id('evt', first);
		END IF;
		INSERT INTO outbox (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key)
		VALUES (event, to_tenant, emit.type, convert_to(emit.data::text, 'UTF8'), emit.key, emit.channels, emit.version, emit.occurred_at, emit.deliver_at, emit.idempotency_key);
		PERFORM pg_notify('posthorn_outbox', '');
		RETURN posthorn.outer_id('evt', event);
	END CASE;
	RAISE EXCEPTION 'posthorn.emit: %', wrong USING ERRCODE = 'invalid_parameter_value', HINT = mend;
END $$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- Rows of the outbox under an idempotency key are few, and are looked for at each emission under one.
CREATE INDEX outbox_idempotency ON outbox (tenant_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- +goose Down

DROP INDEX outbox_idempotency;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.emit(tenant text, type text, data json, key text DEFAULT NULL, channels text[] DEFAULT NULL,
	idempotency_key text DEFAULT NULL, version text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL, deliver_at timestamptz DEFAULT NULL)
RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	to_tenant uuid := posthorn.inner_id('ten', emit.tenant);
	is_in text := (SELECT t.state FROM tenants t WHERE t.id = to_tenant AND t.state <> 'deleted');
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
DROP FUNCTION posthorn.emitted_before(uuid, text, text, bytea, text, text[], text, timestamptz, timestamptz);
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
REVOKE SELECT ON events, outbox FROM posthorn_lookup;
REVOKE SELECT, DELETE ON mail_limits FROM posthorn_console;
