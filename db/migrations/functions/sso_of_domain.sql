-- The tenant whose identity provider has the accounts of a domain.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.sso_of_domain(of_domain text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT d.tenant_id FROM sso_domains d JOIN sso_connections c USING (tenant_id) JOIN tenants t ON t.id = d.tenant_id
	WHERE d.domain = of_domain AND d.verified_at IS NOT NULL AND t.state <> 'deleted'
$$;
REVOKE ALL ON FUNCTION posthorn.sso_of_domain(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.sso_of_domain(text) TO posthorn_account, posthorn_console;
