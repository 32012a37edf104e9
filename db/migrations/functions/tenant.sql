-- The tenant of this transaction, or null. Set with set_config('posthorn.tenant', ..., true).
CREATE OR REPLACE FUNCTION posthorn.tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('posthorn.tenant', true), '')::uuid;
REVOKE ALL ON FUNCTION posthorn.tenant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.tenant() TO posthorn_console, posthorn_ingest, posthorn_lookup, posthorn_tenant, posthorn_worker;
