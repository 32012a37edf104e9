-- Fails where an emission would fail. In PL/pgSQL: on a new connection the call loads its library, which an update of
-- PostgreSQL's package can have replaced. Each emission inserts into the ledger, so this does. For the other tables a
-- check of the rights is enough, and costs nothing.
CREATE OR REPLACE FUNCTION posthorn.prove_emission() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
	lacking text;
BEGIN
	SELECT string_agg(n.privilege || ' on ' || n.name, ', ') INTO lacking
	FROM (VALUES ('tenants', 'SELECT'), ('endpoints', 'SELECT'), ('events', 'INSERT'), ('deliveries', 'INSERT'), ('queue', 'INSERT'),
		('idempotency_keys', 'SELECT'), ('idempotency_keys', 'INSERT'), ('idempotency_keys', 'UPDATE')) AS n(name, privilege)
	WHERE NOT has_table_privilege('posthorn.' || n.name, n.privilege);
	IF lacking IS NOT NULL THEN
		RAISE insufficient_privilege USING MESSAGE = format('%s lacks %s', current_user, lacking);
	END IF;
	INSERT INTO posthorn.ledger DEFAULT VALUES;
	RETURN clock_timestamp();
END $$;
REVOKE ALL ON FUNCTION posthorn.prove_emission() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.prove_emission() TO posthorn_ingest;
