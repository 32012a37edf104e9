-- Facts for the reason why a delivery waits, and for its due time when the breaker closes.

-- +goose Up

-- planned_at: of a delivery that was a probe, when its own schedule would try it again. Due times of probes follow the breaker.
ALTER TABLE queue ADD COLUMN planned_at timestamptz;
CREATE INDEX queue_probed ON queue (endpoint_id) WHERE probes > 0;
-- limited_by: what delays the lane's ready rows, as its owner noted: 0 nothing, 1 the rate limit, 2 the requests in
-- flight.
ALTER TABLE lanes ADD COLUMN limited_by smallint NOT NULL DEFAULT 0;
-- Programs of the version before go on with the function of six arguments.
-- +goose StatementBegin
CREATE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[], planned_us bigint[])
RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i], probes = probed[i], asked = false,
			planned_at = CASE WHEN planned_us[i] >= 0 THEN now() + planned_us[i] * interval '1 microsecond' END
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[], bigint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[], bigint[]) TO posthorn_worker;

GRANT SELECT ON workers TO posthorn_lookup;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- Whether a live worker holds a lane, or one could take it. Anybody may know: it says nothing of a tenant.
-- +goose StatementBegin
CREATE FUNCTION posthorn.lane_served(owner uuid, silent_seconds double precision) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM workers w WHERE NOT w.dead AND coalesce(w.beat_at > now() - make_interval(secs => silent_seconds), true)
		AND (lane_served.owner IS NULL OR w.id = lane_served.owner))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.lane_served(uuid, double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.lane_served(uuid, double precision) TO posthorn_tenant, posthorn_worker, posthorn_console;
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
DROP FUNCTION posthorn.lane_served(uuid, double precision);
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
REVOKE SELECT ON workers FROM posthorn_lookup;
DROP FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[], bigint[]);
ALTER TABLE lanes DROP COLUMN limited_by;
DROP INDEX queue_probed;
ALTER TABLE queue DROP COLUMN planned_at;
