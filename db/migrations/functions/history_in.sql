-- Inserts lines of a stored object into a table, and returns how many. Rows of other tenants and other times are
-- ignored.
CREATE OR REPLACE FUNCTION posthorn.history_in(name text, lines text[], of_tenant uuid, low timestamptz, high timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	n bigint;
	key text := CASE WHEN name IN ('events', 'deliveries') THEN 'r.created_at' ELSE 'posthorn.created_at(r.delivery_id)' END;
BEGIN
	IF name NOT IN ('events', 'deliveries', 'attempts', 'dead_letters', 'cancellations') THEN
		RAISE EXCEPTION 'no table of history: %', name;
	END IF;
	EXECUTE format('INSERT INTO %I SELECT r.* FROM unnest($1) AS u(line), json_populate_record(NULL::%I, u.line::json) AS r
		WHERE r.tenant_id = $2 AND %s >= $3 AND %s < $4', name, name, key, key) USING lines, of_tenant, low, high;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;
REVOKE ALL ON FUNCTION posthorn.history_in(text, text[], uuid, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.history_in(text, text[], uuid, timestamptz, timestamptz) TO posthorn_console;
