-- Erases some rows of a deleted tenant in tables without partitions, and returns how many. The ledger's totals hold
-- only numbers, and the audit log is append-only: both stay, and so does where a tenant has moved. The worker ends waiting
-- deliveries.
CREATE OR REPLACE FUNCTION posthorn.erase_rest(of_tenant uuid, most int) RETURNS bigint LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	t regclass;
	n bigint;
	total bigint := 0;
BEGIN
	FOR t IN SELECT c.oid::regclass FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
			AND c.relname NOT IN ('audit_log', 'books', 'queue', 'lanes', 'tenant_moves', 'moved_tenants')
		ORDER BY c.relname = 'endpoints', c.relname
	LOOP
		EXECUTE format('DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE tenant_id = $1 LIMIT $2))', t, t) USING of_tenant, most;
		GET DIAGNOSTICS n = ROW_COUNT;
		total := total + n;
	END LOOP;
	RETURN total;
END $$;
REVOKE ALL ON FUNCTION posthorn.erase_rest(uuid, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.erase_rest(uuid, int) TO posthorn_console;
