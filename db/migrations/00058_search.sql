-- The search of the dashboard finds an event by its idempotency key. A tenant's role can't read that table, which has
-- digests of bodies: the function returns only the event. The tenant is the transaction's, not an argument.

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION posthorn.event_of_key(wanted text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT event_id FROM idempotency_keys WHERE tenant_id = posthorn.tenant() AND key = wanted
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.event_of_key(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.event_of_key(text) TO posthorn_tenant;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.event_of_key(text) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.event_of_key(text);
