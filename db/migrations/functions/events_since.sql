-- How many of a tenant's events the ledger holds that no job has folded yet. The ledger holds the events of all
-- tenants; a tenant sees only its own.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.events_since(tenant uuid, since date) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT coalesce((SELECT sum(b.events) FROM books b WHERE b.tenant_id = events_since.tenant AND b.day >= since), 0)::bigint
		+ coalesce((SELECT sum(u.n) FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.events)) AS u(tenant_id, day, n)
			WHERE u.tenant_id = events_since.tenant AND u.day >= since), 0)::bigint
	WHERE events_since.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_ingest', 'posthorn_worker', 'posthorn_console')
$$;
REVOKE ALL ON FUNCTION posthorn.events_since(uuid, date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.events_since(uuid, date) TO posthorn_console, posthorn_ingest, posthorn_tenant, posthorn_worker;
