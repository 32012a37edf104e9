-- The smallest UUIDv7 of a moment: smaller ids are older.
CREATE OR REPLACE FUNCTION posthorn.first_id(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid;
REVOKE ALL ON FUNCTION posthorn.first_id(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.first_id(timestamptz) TO posthorn_console, posthorn_ingest, posthorn_lookup, posthorn_tenant, posthorn_worker;
