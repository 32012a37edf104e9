-- With thousands of tenants, a question about one tenant's endpoints looked at the lanes and endpoints of all: a plan that does not know the
-- tenant can't use an index for "null or this one". A range does.

-- +goose Up

-- As before, each scope by its own index. Without a pause, no endpoint is read.
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT x.id FROM (
		SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p CROSS JOIN endpoints e WHERE p.scope = 'platform'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e ON e.tenant_id = p.tenant_id WHERE p.scope = 'tenant'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM tenants t JOIN endpoints e ON e.tenant_id = t.id WHERE t.state = 'suspended'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e ON e.id = p.endpoint_id WHERE p.scope = 'endpoint'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e
			ON p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', '')) WHERE p.scope = 'host'
	) x
	WHERE x.deleted_at IS NULL AND x.tenant_id BETWEEN coalesce(of_tenant, '00000000-0000-0000-0000-000000000000')
			AND coalesce(of_tenant, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- As before. The console asks about many tenants in a query: what operators paused is found once for all of them, and not again for each.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.lane_states(of_tenant uuid, silent_seconds double precision)
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
				greatest(e.status_at, t.state_at, l.limited_until, h.closed_at, CASE WHEN l.not_before <= now() THEN l.not_before END) AS since,
				CASE
					WHEN t.state = 'suspended' THEN 'suspended'
					WHEN e.status <> 'active' THEN e.status
					WHEN CASE current_setting('role') WHEN 'posthorn_console' THEN l.endpoint_id IN (SELECT posthorn.paused_endpoints())
						ELSE l.endpoint_id IN (SELECT posthorn.paused_endpoints(lane_states.of_tenant)) END THEN 'paused_by_operator'
					WHEN h.breaker_state <> 0 AND h.opened_at IS NOT NULL AND h.next_probe_at IS NOT NULL THEN 'failing'
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
-- +goose StatementEnd

-- The console reads the totals of the last days.
CREATE INDEX books_day ON books (day);

-- +goose Down

DROP INDEX books_day;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.lane_states(of_tenant uuid, silent_seconds double precision)
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
				greatest(e.status_at, t.state_at, l.limited_until, h.closed_at, CASE WHEN l.not_before <= now() THEN l.not_before END) AS since,
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
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT e.id FROM (
		SELECT scope, tenant_id, endpoint_id, host FROM dispatch_pauses
		UNION ALL SELECT 'tenant', t.id, NULL, '' FROM tenants t WHERE t.state = 'suspended'
	) p JOIN endpoints e
		ON p.scope = 'platform' OR p.scope = 'tenant' AND e.tenant_id = p.tenant_id OR p.scope = 'endpoint' AND e.id = p.endpoint_id
		OR p.scope = 'host' AND p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', ''))
	WHERE e.deleted_at IS NULL AND (of_tenant IS NULL OR e.tenant_id = of_tenant)
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
