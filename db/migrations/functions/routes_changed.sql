-- Fails the transaction with an error code of its own: the routes of a batch have changed.
CREATE OR REPLACE FUNCTION posthorn.routes_changed() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'routes have changed' USING ERRCODE = 'PH001';
END $$;
REVOKE ALL ON FUNCTION posthorn.routes_changed() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.routes_changed() TO posthorn_ingest;
