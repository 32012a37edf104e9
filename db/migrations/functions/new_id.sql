-- A UUIDv7 (RFC 9562) of now: milliseconds, then the microseconds as the 12 bits that method 3 of section 6.2 allows,
-- so that ids of one transaction are in its order.
CREATE OR REPLACE FUNCTION posthorn.new_id() RETURNS uuid LANGUAGE sql VOLATILE
RETURN (SELECT (lpad(to_hex(us / 1000), 12, '0') || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
	FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS moment);
REVOKE ALL ON FUNCTION posthorn.new_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.new_id() TO posthorn_lookup;
