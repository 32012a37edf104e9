-- A batch with changed routes fails with an error code of its own. It used to divide by zero, so that any division by
-- zero looked like changed routes.

-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION posthorn.routes_changed() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'routes have changed' USING ERRCODE = 'PH001';
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION posthorn.routes_changed() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.routes_changed() TO posthorn_ingest;

-- +goose Down

DROP FUNCTION posthorn.routes_changed();
