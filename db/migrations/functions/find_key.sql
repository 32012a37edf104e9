-- The API key of a hash. It is called before the tenant is known. A platform key has the zero tenant.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.find_key(key_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, scopes text[], expires_at timestamptz, revoked boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT k.id, coalesce(k.tenant_id, '00000000-0000-0000-0000-000000000000'), k.scopes,
		coalesce(k.expires_at, '9999-12-31Z'), k.revoked_at IS NOT NULL, CASE WHEN t.moving THEN 'moving' ELSE coalesce(t.state, '') END
	FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
	WHERE k.hash = key_hash
$$;
REVOKE ALL ON FUNCTION posthorn.find_key(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_key(bytea) TO posthorn_ingest;
