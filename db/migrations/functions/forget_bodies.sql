-- Deletes the digests of expunged events, since a digest can confirm a guessed body. Later events with the same
-- idempotency key are rejected. The tenant is the transaction's, not an argument.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.forget_bodies(events uuid[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE idempotency_keys SET body_hash = '' WHERE tenant_id = posthorn.tenant() AND event_id = ANY(events)
$$;
REVOKE ALL ON FUNCTION posthorn.forget_bodies(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.forget_bodies(uuid[]) TO posthorn_tenant;
