-- The event that was emitted under an idempotency key, if it equals the new event. Null if there is no event, or
-- another one: the relay rejects that. A concurrent emission under the same key waits until this transaction has
-- ended.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.emitted_before(of_tenant uuid, of_key text, of_type text, of_data bytea, order_key text, of_channels text[],
	of_version text, occurred timestamptz, deliver timestamptz, own_id text, expires_after int, expires timestamptz)
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
		AND o.external_id IS NOT DISTINCT FROM own_id AND o.expires_in IS NOT DISTINCT FROM expires_after AND o.expires_at IS NOT DISTINCT FROM expires
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
		AND e.occurred_at IS NOT DISTINCT FROM occurred AND (e.deliver_at IS NOT DISTINCT FROM deliver OR deliver <= now())
		AND e.external_id IS NOT DISTINCT FROM own_id
		-- Seconds were counted from when the event was emitted, or could be delivered.
		AND CASE WHEN expires_after IS NULL THEN e.expires_at IS NOT DISTINCT FROM expires
			ELSE coalesce(abs(extract(epoch FROM e.expires_at - greatest(posthorn.created_at(e.id), e.deliver_at)) - expires_after) < 1, false) END;
	RETURN found;
END $$;
REVOKE ALL ON FUNCTION posthorn.emitted_before(uuid, text, text, bytea, text, text[], text, timestamptz, timestamptz, text, int, timestamptz) FROM PUBLIC;
-- With the parameters that older versions have.
CREATE OR REPLACE FUNCTION posthorn.emitted_before(of_tenant uuid, of_key text, of_type text, of_data bytea, order_key text, of_channels text[],
	of_version text, occurred timestamptz, deliver timestamptz, own_id text)
RETURNS uuid LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT posthorn.emitted_before($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL::int, NULL::timestamptz)
$$;
REVOKE ALL ON FUNCTION posthorn.emitted_before(uuid, text, text, bytea, text, text[], text, timestamptz, timestamptz, text) FROM PUBLIC;
