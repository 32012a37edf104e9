-- Puts deliveries off until their retry, if the queue row is as it was read. A delay below 0 puts them behind an earlier
-- delivery of their key. Older processes call the function of
-- seven arguments.
CREATE OR REPLACE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[])
RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = CASE WHEN delays_us[i] < 0 THEN 2 ELSE 1 END,
			due_at = CASE WHEN delays_us[i] >= 0 THEN now() + delays_us[i] * interval '1 microsecond' END,
			attempts = made[i], probes = probed[i], asked = false, planned_at = NULL, tried_at = now()
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
REVOKE ALL ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[]) TO posthorn_worker;
CREATE OR REPLACE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[], planned_us bigint[])
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
REVOKE ALL ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[], bigint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[], bigint[]) TO posthorn_worker;
