-- Ids that the company chooses: for tenants and endpoints in addition to Posthorn's, for events as the id that
-- receivers see. All are null without one, so that adding the columns rewrites nothing.

-- +goose Up

ALTER TABLE tenants ADD COLUMN external_id text CHECK (char_length(external_id) BETWEEN 1 AND 256);
CREATE UNIQUE INDEX tenants_external_id ON tenants (external_id) WHERE external_id IS NOT NULL AND state <> 'deleted';
GRANT UPDATE (external_id) ON tenants TO posthorn_tenant;

ALTER TABLE endpoints ADD COLUMN external_id text CHECK (char_length(external_id) BETWEEN 1 AND 256);
CREATE UNIQUE INDEX endpoints_external_id ON endpoints (tenant_id, external_id) WHERE external_id IS NOT NULL AND deleted_at IS NULL;

CREATE INDEX endpoints_by_external_id ON endpoints (external_id) WHERE external_id IS NOT NULL AND deleted_at IS NULL; -- of all tenants, for operators

ALTER TABLE events ADD COLUMN external_id text;

-- A platform key names its tenant by the company's own id: which one is it?
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE FUNCTION posthorn.find_tenant(external text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT id FROM tenants WHERE external_id = external AND state <> 'deleted'
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.find_tenant(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_tenant(text) TO posthorn_ingest;
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.find_tenant(text);
DROP INDEX endpoints_by_external_id;
DROP INDEX endpoints_external_id;
DROP INDEX tenants_external_id;
ALTER TABLE events DROP COLUMN external_id;
ALTER TABLE endpoints DROP COLUMN external_id;
ALTER TABLE tenants DROP COLUMN external_id;
