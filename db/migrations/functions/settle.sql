-- Deletes the queue rows of final results, if they are as they were read. It finds each row by key and deletes it by
-- its place: a join would be planned, and a plan from an empty queue reads all of a full one.
CREATE OR REPLACE FUNCTION posthorn.settle(tenants uuid[], deliveries uuid[], gens int[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY DELETE FROM queue q
	WHERE q.ctid = ANY(ARRAY(
		SELECT x.place FROM ROWS FROM (unnest(tenants), unnest(deliveries), unnest(gens)) AS u(tenant, delivery, gen)
		CROSS JOIN LATERAL (
			SELECT r.ctid AS place FROM queue r
			WHERE r.tenant_id = u.tenant AND r.delivery_id = u.delivery AND r.gen = u.gen LIMIT 1
		) x))
	RETURNING q.delivery_id;
END $$;
REVOKE ALL ON FUNCTION posthorn.settle(uuid[], uuid[], int[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.settle(uuid[], uuid[], int[]) TO posthorn_worker;
