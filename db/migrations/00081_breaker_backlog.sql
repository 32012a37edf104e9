-- When a breaker closes, the deliveries that waited for it are sent, also those with a later retry; and the streak of
-- 401, 403 and 404 has a time.

-- +goose Up

-- tried_at: when a delivery that waits for a retry was put back. release_before: the lane's rows that were put back until then are to be
-- made ready, in chunks, oldest first; release_after: up to which number they are. Older processes leave them as they are.
ALTER TABLE queue ADD COLUMN tried_at timestamptz;
ALTER TABLE lanes ADD COLUMN release_before timestamptz, ADD COLUMN release_after bigint NOT NULL DEFAULT 0;
CREATE INDEX lanes_release ON lanes (endpoint_id) WHERE release_before IS NOT NULL;

-- As before, with the time. The times of probes' own schedules (planned_at) are no longer needed: the closing of the breaker releases all.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[])
RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i], probes = probed[i], asked = false,
			planned_at = NULL, tried_at = now()
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd

-- The first of the 401, 403 and 404 since the last success.
ALTER TABLE endpoint_health ADD COLUMN auth_since timestamptz;

-- +goose Down

ALTER TABLE endpoint_health DROP COLUMN auth_since;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[])
RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i], probes = probed[i], asked = false
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd
DROP INDEX lanes_release;
ALTER TABLE lanes DROP COLUMN release_after, DROP COLUMN release_before;
ALTER TABLE queue DROP COLUMN tried_at;
