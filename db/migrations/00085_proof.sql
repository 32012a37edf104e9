-- For /readyz: can the database store an emission? The check calls this function in a transaction that it rolls back.

-- +goose Up

-- In PL/pgSQL: on a new connection the call loads its library, which an update of PostgreSQL's package can have replaced.
-- An entry in the ledger is what each emission writes. Of the other tables the rights are enough, and cost nothing.
-- +goose StatementBegin
CREATE FUNCTION posthorn.prove_emission() RETURNS timestamptz LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.prove_emission() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.prove_emission() TO posthorn_ingest;

-- +goose Down

DROP FUNCTION posthorn.prove_emission();
