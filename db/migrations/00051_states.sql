-- How endpoints are and why deliveries wait, for queries that count many of them. The functions mirror domain/condition; a test compares
-- both over every combination of facts (db/endpoints/states_test.go).

-- +goose Up

-- limited_until: until when the endpoint's own limits, its circuit breaker or an operator's pause last kept the lane from sending, as the
-- lane's owner noted. The time before it is not the platform's lateness.
ALTER TABLE lanes ADD COLUMN limited_until timestamptz;

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- The workers that are alive. Anybody can know: it says nothing of a tenant.
-- +goose StatementBegin
CREATE FUNCTION posthorn.live_workers(silent_seconds double precision) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = posthorn, pg_temp AS $$
	SELECT w.id FROM workers w WHERE NOT w.dead AND coalesce(w.beat_at > now() - make_interval(secs => silent_seconds), true)
$$;
-- +goose StatementEnd
-- A suspended tenant is suspended, also while everything is paused.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.pause_of(tenant uuid, endpoint uuid, url text) RETURNS TABLE (scope text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, p.created_at FROM (
		SELECT d.scope, d.tenant_id, d.endpoint_id, d.host, d.created_at FROM dispatch_pauses d
		UNION ALL SELECT 'suspended', t.id, NULL, '', t.state_at FROM tenants t WHERE t.id = pause_of.tenant AND t.state = 'suspended'
	) p
	WHERE (p.scope = 'platform' OR p.scope IN ('tenant', 'suspended') AND p.tenant_id = pause_of.tenant OR p.scope = 'endpoint' AND p.endpoint_id = pause_of.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(pause_of.url), regexp_replace(posthorn.url_host(pause_of.url), ':[0-9]+$', '')))
		AND (pause_of.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['suspended', 'platform', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.live_workers(double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.live_workers(double precision) TO posthorn_tenant, posthorn_worker, posthorn_console;
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- The lanes of one tenant, or for trusted roles of all: condition is the endpoint's (condition.Of), waits is why a ready delivery waits
-- there (condition.WaitOf). ready: it is sent as fast as the endpoint's limits and the workers allow (Lane.Ready). due: nothing but the
-- platform keeps it (Lane.Due). since: the last moment at which something else did. The function has neither settings nor its owner's
-- rights, so that the planner inlines it.
-- +goose StatementBegin
CREATE FUNCTION posthorn.lane_states(of_tenant uuid, silent_seconds double precision)
RETURNS TABLE (endpoint_id uuid, tenant_id uuid, listens boolean, condition text, waits text, ready boolean, due boolean, not_before timestamptz, since timestamptz)
LANGUAGE sql STABLE ROWS 1000 AS $$
	SELECT w.endpoint_id, w.tenant_id, w.listens, w.condition, w.waits,
		w.condition = 'active' AND w.waits IN ('next', 'rate_limit', 'concurrency', 'no_worker'),
		w.condition = 'active' AND w.waits IN ('next', 'no_worker'), w.not_before, w.since
	FROM (
		SELECT s.*, CASE s.condition
			WHEN 'suspended' THEN 'tenant_suspended'
			WHEN 'disabled' THEN 'endpoint_disabled'
			WHEN 'unverified' THEN 'endpoint_unverified'
			WHEN 'paused' THEN 'endpoint_paused'
			WHEN 'paused_by_operator' THEN 'paused_by_operator'
			ELSE CASE
				WHEN s.listens THEN 'listener'
				WHEN NOT s.served THEN 'no_worker'
				WHEN s.condition = 'failing' THEN 'breaker'
				WHEN s.not_before > now() THEN 'retry_after'
				WHEN s.limited_by = 1 AND s.rate_limit > 0 THEN 'rate_limit'
				WHEN s.limited_by = 2 THEN 'concurrency'
				ELSE 'next'
			END
		END AS waits
		FROM (
			SELECT l.endpoint_id, l.tenant_id, e.kind = 'listen' AS listens, l.not_before, e.rate_limit,
				CASE WHEN l.owner IS NULL THEN 0 ELSE l.limited_by END AS limited_by,
				CASE WHEN l.owner IS NULL THEN EXISTS (SELECT FROM posthorn.live_workers(lane_states.silent_seconds))
					ELSE l.owner IN (SELECT posthorn.live_workers(lane_states.silent_seconds)) END AS served,
				greatest(e.status_at, t.state_at, l.limited_until, CASE WHEN l.not_before <= now() THEN l.not_before END) AS since,
				CASE
					WHEN t.state = 'suspended' THEN 'suspended'
					WHEN e.status <> 'active' THEN e.status
					WHEN l.endpoint_id IN (SELECT posthorn.paused_endpoints(lane_states.of_tenant)) THEN 'paused_by_operator'
					WHEN h.breaker_state <> 0 AND h.opened_at IS NOT NULL AND h.next_probe_at IS NOT NULL THEN 'failing'
					ELSE 'active'
				END AS condition
			FROM posthorn.lanes l JOIN posthorn.endpoints e ON e.tenant_id = l.tenant_id AND e.id = l.endpoint_id
			JOIN posthorn.tenants t ON t.id = l.tenant_id
			LEFT JOIN posthorn.endpoint_health h ON h.endpoint_id = l.endpoint_id AND h.tenant_id = l.tenant_id
			WHERE NOT l.deleted AND e.deleted_at IS NULL AND (lane_states.of_tenant IS NULL OR l.tenant_id = lane_states.of_tenant)
			OFFSET 0 -- each fact is computed once
		) s
	) w
$$;
-- +goose StatementEnd
-- Why one row of the queue waits, by what lane_states says of its lane.
-- +goose StatementBegin
CREATE FUNCTION posthorn.row_waits(row_state smallint, due_at timestamptz, asked boolean, condition text, waits text, not_before timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE
		WHEN condition NOT IN ('active', 'failing') THEN waits
		WHEN row_state = 3 AND due_at > now() THEN 'deferred'
		WHEN waits IN ('listener', 'no_worker') THEN waits
		WHEN condition = 'failing' AND asked THEN 'next'
		WHEN condition = 'failing' THEN 'breaker'
		WHEN row_state = 2 THEN 'order'
		WHEN row_state = 1 AND due_at > now() AND due_at >= coalesce(not_before, '-infinity') THEN 'retry'
		WHEN not_before > now() THEN 'retry_after'
		WHEN row_state = 0 THEN waits
		ELSE 'next'
	END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.lane_states(uuid, double precision) FROM PUBLIC;
REVOKE ALL ON FUNCTION posthorn.row_waits(smallint, timestamptz, boolean, text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.lane_states(uuid, double precision), posthorn.row_waits(smallint, timestamptz, boolean, text, text, timestamptz)
	TO posthorn_tenant, posthorn_worker, posthorn_console;

-- +goose Down

DROP FUNCTION posthorn.row_waits(smallint, timestamptz, boolean, text, text, timestamptz);
DROP FUNCTION posthorn.lane_states(uuid, double precision);
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
DROP FUNCTION posthorn.live_workers(double precision);
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.pause_of(tenant uuid, endpoint uuid, url text) RETURNS TABLE (scope text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, p.created_at FROM (
		SELECT d.scope, d.tenant_id, d.endpoint_id, d.host, d.created_at FROM dispatch_pauses d
		UNION ALL SELECT 'suspended', t.id, NULL, '', t.state_at FROM tenants t WHERE t.id = pause_of.tenant AND t.state = 'suspended'
	) p
	WHERE (p.scope = 'platform' OR p.scope IN ('tenant', 'suspended') AND p.tenant_id = pause_of.tenant OR p.scope = 'endpoint' AND p.endpoint_id = pause_of.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(pause_of.url), regexp_replace(posthorn.url_host(pause_of.url), ':[0-9]+$', '')))
		AND (pause_of.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['platform', 'suspended', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
ALTER TABLE lanes DROP COLUMN limited_until;
