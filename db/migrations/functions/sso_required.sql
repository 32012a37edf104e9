-- Whether the tenant requires this member to sign in with its identity provider.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.sso_required(tenant uuid, member uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM sso_connections c WHERE c.tenant_id = tenant AND c.sso_only AND c.break_glass IS DISTINCT FROM member)
$$;
REVOKE ALL ON FUNCTION posthorn.sso_required(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.sso_required(uuid, uuid) TO posthorn_account, posthorn_console;
