-- The condition of each lane's endpoint, and what its deliveries wait for (domain/condition;
-- db/endpoints/states_test.go compares both). The console reads many tenants in one query: operators' pauses are then
-- read once for all of them.
CREATE OR REPLACE FUNCTION posthorn.lane_states(of_tenant uuid, silent_seconds double precision)
RETURNS TABLE (endpoint_id uuid, tenant_id uuid, listens boolean, condition text, waits text, ready boolean, due boolean, not_before timestamptz, since timestamptz)
LANGUAGE sql STABLE ROWS 1000 AS $$
	SELECT w.endpoint_id, w.tenant_id, w.listens, w.state, w.waits,
		w.state IN ('active', 'waiting_for_worker') AND w.waits IN ('next', 'rate_limit', 'concurrency', 'no_worker'),
		w.state IN ('active', 'waiting_for_worker') AND w.waits IN ('next', 'no_worker'), w.not_before, w.since
	FROM (
		SELECT s.*, CASE WHEN s.condition = 'active' AND NOT s.served AND NOT s.listens THEN 'waiting_for_worker' ELSE s.condition END AS state,
			CASE s.condition
			WHEN 'suspended' THEN 'tenant_suspended'
			WHEN 'disabled' THEN 'endpoint_disabled'
			WHEN 'unverified' THEN 'endpoint_unverified'
			WHEN 'paused' THEN 'endpoint_paused'
			WHEN 'paused_by_operator' THEN 'paused_by_operator'
			ELSE CASE
				WHEN s.listens THEN 'listener'
				WHEN NOT s.served THEN 'no_worker'
				WHEN s.condition = 'failing' THEN 'breaker'
				WHEN s.condition = 'asked_to_wait' THEN 'retry_after'
				WHEN s.limited_by = 1 AND s.rate_limit > 0 THEN 'rate_limit'
				WHEN s.limited_by = 2 THEN 'concurrency'
				ELSE 'next'
			END
		END AS waits
		FROM (
			SELECT l.endpoint_id, l.tenant_id, e.kind = 'listen' AS listens, l.not_before, e.rate_limit,
				CASE WHEN l.owner IS NULL THEN 0 ELSE l.limited_by END AS limited_by,
				CASE WHEN e.kind = 'feed' THEN true -- its consumers need no worker
					WHEN l.owner IS NULL THEN EXISTS (SELECT FROM posthorn.live_workers(lane_states.silent_seconds))
					ELSE l.owner IN (SELECT posthorn.live_workers(lane_states.silent_seconds)) END AS served,
				greatest(e.status_at, t.state_at, l.limited_until, h.closed_at, CASE WHEN l.not_before <= now() THEN l.not_before END) AS since,
				CASE
					WHEN t.state = 'suspended' THEN 'suspended'
					WHEN e.status IN ('disabled', 'unverified') THEN e.status
					WHEN e.kind = 'listen' AND l.endpoint_id NOT IN (SELECT i.endpoint_id FROM posthorn.listeners i
						WHERE i.contact_at > now() - interval '1 minute') THEN 'disconnected'
					WHEN e.status <> 'active' THEN e.status
					WHEN CASE current_setting('role') WHEN 'posthorn_console' THEN l.endpoint_id IN (SELECT posthorn.paused_endpoints())
						ELSE l.endpoint_id IN (SELECT posthorn.paused_endpoints(lane_states.of_tenant)) END THEN 'paused_by_operator'
					WHEN h.breaker_state <> 0 AND h.opened_at IS NOT NULL AND h.next_probe_at IS NOT NULL THEN 'failing'
					WHEN l.not_before > now() THEN 'asked_to_wait'
					ELSE 'active'
				END AS condition
			FROM posthorn.lanes l JOIN posthorn.endpoints e ON e.tenant_id = l.tenant_id AND e.id = l.endpoint_id
			JOIN posthorn.tenants t ON t.id = l.tenant_id
			LEFT JOIN posthorn.endpoint_health h ON h.endpoint_id = l.endpoint_id AND h.tenant_id = l.tenant_id
			WHERE NOT l.deleted AND e.deleted_at IS NULL AND
				e.tenant_id BETWEEN coalesce(lane_states.of_tenant, '00000000-0000-0000-0000-000000000000')
				AND coalesce(lane_states.of_tenant, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
			OFFSET 0 -- each fact is computed once
		) s
	) w
$$;
REVOKE ALL ON FUNCTION posthorn.lane_states(uuid, double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.lane_states(uuid, double precision) TO posthorn_console, posthorn_tenant, posthorn_worker;
