-- The scope of the widest pause that concerns an endpoint, or null. A tenant can ask only about itself.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.paused_by(tenant uuid, endpoint uuid, url text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope FROM posthorn.pause_of(paused_by.tenant, paused_by.endpoint, paused_by.url) p
$$;
REVOKE ALL ON FUNCTION posthorn.paused_by(uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.paused_by(uuid, uuid, text) TO posthorn_console, posthorn_tenant, posthorn_worker;
