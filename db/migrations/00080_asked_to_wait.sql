-- A wait that an endpoint asked for with Retry-After is a condition of the endpoint, which people can end.

-- +goose Up

-- asked_at: since when the endpoint asks. look_at: when one delivery is sent nevertheless, as a test. wait_epoch grows
-- when a person ends the wait: earlier knowledge of the lane's owner is void. Older processes do not write the three.
ALTER TABLE lanes ADD COLUMN asked_at timestamptz, ADD COLUMN look_at timestamptz, ADD COLUMN wait_epoch int NOT NULL DEFAULT 0;

-- As before, and a lane whose endpoint asked for a wait has a condition of its own.
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
				WHEN s.condition = 'asked_to_wait' THEN 'retry_after'
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
-- +goose StatementEnd
-- As before. A delivery whose retry is due while the lane waits waits for the lane.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.row_waits(row_state smallint, due_at timestamptz, asked boolean, condition text, waits text, not_before timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE
		WHEN condition NOT IN ('active', 'failing', 'asked_to_wait') THEN waits
		WHEN row_state = 3 AND due_at > now() THEN 'deferred'
		WHEN waits IN ('listener', 'no_worker') THEN waits
		WHEN condition IN ('failing', 'asked_to_wait') AND asked THEN 'next'
		WHEN condition = 'failing' THEN 'breaker'
		WHEN row_state = 2 THEN 'order'
		WHEN row_state = 1 AND due_at > now() AND due_at > coalesce(not_before, '-infinity') THEN 'retry'
		WHEN not_before > now() THEN 'retry_after'
		WHEN row_state = 0 THEN waits
		ELSE 'next'
	END
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
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.row_waits(row_state smallint, due_at timestamptz, asked boolean, condition text, waits text, not_before timestamptz) RETURNS text
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
ALTER TABLE lanes DROP COLUMN wait_epoch, DROP COLUMN look_at, DROP COLUMN asked_at;
