-- Whether a live worker owns a lane or can take it. Every role can know: the result has no data of a tenant.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.lane_served(owner uuid, silent_seconds double precision) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM workers w WHERE NOT w.dead AND coalesce(w.beat_at > now() - make_interval(secs => silent_seconds), true)
		AND (lane_served.owner IS NULL OR w.id = lane_served.owner))
$$;
REVOKE ALL ON FUNCTION posthorn.lane_served(uuid, double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.lane_served(uuid, double precision) TO posthorn_console, posthorn_tenant, posthorn_worker;
