-- The end of a tenant. Its row stays, for the audit log and the totals, and no reader finds it.

-- +goose Up

ALTER TABLE tenants DROP CONSTRAINT tenants_state_check;
ALTER TABLE tenants ADD CONSTRAINT tenants_state_check CHECK (state IN ('active', 'suspended', 'deleted'));
ALTER TABLE tenants ADD COLUMN deleted_at timestamptz, ADD COLUMN erased_at timestamptz; -- when it was deleted, and when nothing of it was left
CREATE INDEX tenants_to_erase ON tenants (deleted_at) WHERE state = 'deleted' AND erased_at IS NULL;

-- For a platform key, and for who emits in SQL, a deleted tenant is as unknown as any.
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT state FROM tenants WHERE id = tenant AND state <> 'deleted'
$$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$
DECLARE
	definition text := pg_get_functiondef('posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz)'::regprocedure);
BEGIN
	IF strpos(definition, 'WHERE t.id = to_tenant)') = 0 THEN
		RAISE EXCEPTION 'posthorn.emit does not look its tenant up as expected';
	END IF;
	EXECUTE replace(definition, 'WHERE t.id = to_tenant)', 'WHERE t.id = to_tenant AND t.state <> ''deleted'')');
END $$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- Erases some of what a deleted tenant has in tables that are not partitioned, whichever there are, and returns how many rows that was.
-- The books hold numbers alone, and the audit log is append-only: both stay. What waits is ended by the worker, not erased.
-- +goose StatementBegin
CREATE FUNCTION posthorn.erase_rest(of_tenant uuid, most int) RETURNS bigint LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	t regclass;
	n bigint;
	total bigint := 0;
BEGIN
	FOR t IN SELECT c.oid::regclass FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
			AND c.relname NOT IN ('audit_log', 'books', 'queue', 'lanes')
		ORDER BY c.relname = 'endpoints', c.relname
	LOOP
		EXECUTE format('DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE tenant_id = $1 LIMIT $2))', t, t) USING of_tenant, most;
		GET DIAGNOSTICS n = ROW_COUNT;
		total := total + n;
	END LOOP;
	RETURN total;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.erase_rest(uuid, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.erase_rest(uuid, int) TO posthorn_console;

-- +goose Down

DROP FUNCTION posthorn.erase_rest(uuid, int);

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT state FROM tenants WHERE id = tenant
$$;
-- +goose StatementEnd
-- +goose StatementBegin
DO $$ BEGIN
	EXECUTE replace(pg_get_functiondef('posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz)'::regprocedure),
		' AND t.state <> ''deleted'')', ')');
END $$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
DROP INDEX tenants_to_erase;
-- A version that knows no deleted tenants keeps them suspended.
UPDATE tenants SET state = 'suspended' WHERE state = 'deleted';
ALTER TABLE tenants DROP COLUMN erased_at, DROP COLUMN deleted_at;
ALTER TABLE tenants DROP CONSTRAINT tenants_state_check;
ALTER TABLE tenants ADD CONSTRAINT tenants_state_check CHECK (state IN ('active', 'suspended'));
