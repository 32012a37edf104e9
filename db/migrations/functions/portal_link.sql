-- A portal link by its token or its id, also if it has ended: an ended sign-in is shown in the provider's brand. Older
-- processes call find_portal.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.portal_link(token_hash bytea, link uuid)
RETURNS TABLE (tenant_id uuid, id uuid, role text, brand text, accent text, return_url text, allow_secrets boolean, allow_replay boolean,
	allow_event_types boolean, allow_payloads boolean, revoked boolean, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT l.tenant_id, l.id, l.role, l.brand, l.accent, l.return_url, l.allow_secrets, l.allow_replay,
		l.allow_event_types, l.allow_payloads, l.revoked_at IS NOT NULL, t.name, t.state
	FROM portal_links l JOIN tenants t ON t.id = l.tenant_id
	WHERE l.hash = token_hash OR l.id = link
$$;
REVOKE ALL ON FUNCTION posthorn.portal_link(bytea, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.portal_link(bytea, uuid) TO posthorn_account;
