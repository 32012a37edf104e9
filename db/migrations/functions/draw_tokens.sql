-- Draws up to want tokens from a bucket with a fill rate per second and a size, and returns how many it has drawn.
CREATE OR REPLACE FUNCTION posthorn.draw_tokens(of_tenant uuid, rate double precision, size double precision, want int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	have double precision;
	given int;
BEGIN
	INSERT INTO quota_buckets AS b (tenant_id, tokens, at) VALUES (of_tenant, size, clock_timestamp()) ON CONFLICT DO NOTHING;
	SELECT least(size, b.tokens + rate * greatest(extract(epoch FROM clock_timestamp() - b.at), 0)) INTO have
	FROM quota_buckets b WHERE b.tenant_id = of_tenant FOR NO KEY UPDATE;
	given := least(want, floor(greatest(have, 0)))::int;
	UPDATE quota_buckets b SET tokens = have - given, at = clock_timestamp() WHERE b.tenant_id = of_tenant;
	RETURN given;
END $$;
REVOKE ALL ON FUNCTION posthorn.draw_tokens(uuid, double precision, double precision, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.draw_tokens(uuid, double precision, double precision, int) TO posthorn_ingest;
