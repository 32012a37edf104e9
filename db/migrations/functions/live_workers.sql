-- The workers that are alive. Every role can know: the result has no data of a tenant.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.live_workers(silent_seconds double precision) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = posthorn, pg_temp AS $$
	SELECT w.id FROM workers w WHERE NOT w.dead AND coalesce(w.beat_at > now() - make_interval(secs => silent_seconds), true)
$$;
REVOKE ALL ON FUNCTION posthorn.live_workers(double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.live_workers(double precision) TO posthorn_console, posthorn_tenant, posthorn_worker;
