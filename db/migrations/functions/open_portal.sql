-- Opens a portal link, once. No row if the link does not exist, is open already, or is revoked or expired.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.open_portal(token_hash bytea)
RETURNS TABLE (tenant_id uuid, id uuid, session_seconds int)
LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE portal_links SET opened_at = now()
	WHERE hash = token_hash AND opened_at IS NULL AND revoked_at IS NULL AND open_until > now()
	RETURNING tenant_id, id, session_seconds
$$;
REVOKE ALL ON FUNCTION posthorn.open_portal(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.open_portal(bytea) TO posthorn_account;
