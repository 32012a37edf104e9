-- +goose Up

-- Parts of the dashboard that a portal link can leave out.
ALTER TABLE portal_links
	ADD COLUMN allow_replay boolean NOT NULL DEFAULT true,
	ADD COLUMN allow_event_types boolean NOT NULL DEFAULT true,
	ADD COLUMN allow_payloads boolean NOT NULL DEFAULT true;

-- A link by its token or its id, whether it is still good or not: an ended sign-in is shown in the provider's brand.
-- Older processes call find_portal.
-- +goose StatementBegin
CREATE FUNCTION posthorn.portal_link(token_hash bytea, link uuid)
RETURNS TABLE (tenant_id uuid, id uuid, role text, brand text, accent text, return_url text, allow_secrets boolean, allow_replay boolean,
	allow_event_types boolean, allow_payloads boolean, revoked boolean, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT l.tenant_id, l.id, l.role, l.brand, l.accent, l.return_url, l.allow_secrets, l.allow_replay,
		l.allow_event_types, l.allow_payloads, l.revoked_at IS NOT NULL, t.name, t.state
	FROM portal_links l JOIN tenants t ON t.id = l.tenant_id
	WHERE l.hash = token_hash OR l.id = link
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.portal_link(bytea, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.portal_link(bytea, uuid) TO posthorn_account;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.portal_link(bytea, uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.portal_link(bytea, uuid);
ALTER TABLE portal_links DROP COLUMN allow_replay, DROP COLUMN allow_event_types, DROP COLUMN allow_payloads;
