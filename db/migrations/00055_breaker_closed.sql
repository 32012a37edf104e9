-- When an endpoint's circuit breaker last closed. Deliveries that waited for it are not late at that moment, and the
-- worker's note about its lane follows seconds later. Older processes do not write the column.

-- +goose Up

ALTER TABLE endpoint_health ADD COLUMN closed_at timestamptz;

-- As before, and the time since which a lane's deliveries are due counts from the closing of its breaker.
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

-- +goose Down

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
ALTER TABLE endpoint_health DROP COLUMN closed_at;
