-- The creation time in a UUIDv7: its first 48 bits are milliseconds since 1970 (RFC 9562, section 5.7).
CREATE OR REPLACE FUNCTION posthorn.created_at(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0);
REVOKE ALL ON FUNCTION posthorn.created_at(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.created_at(uuid) TO posthorn_console, posthorn_ingest, posthorn_lookup, posthorn_tenant, posthorn_worker;
