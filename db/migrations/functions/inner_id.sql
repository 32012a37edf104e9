-- The UUID of a prefixed id, or of a UUID in PostgreSQL's form. Null for any other text.
CREATE OR REPLACE FUNCTION posthorn.inner_id(prefix text, given text) RETURNS uuid LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	bits bit varying := B'';
BEGIN
	IF given ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
		RETURN given::uuid;
	END IF;
	IF given !~ ('^' || prefix || '_[0-7][0-9a-hjkmnp-tv-z]{25}$') THEN
		RETURN NULL;
	END IF;
	FOR i IN length(prefix) + 2..length(given) LOOP
		bits := bits || (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(given, i, 1)) - 1)::bit(5);
	END LOOP;
	RETURN (SELECT string_agg(to_hex(substring(bits FROM 3 + n * 4 FOR 4)::bit(4)::int), '' ORDER BY n) FROM generate_series(0, 31) n)::uuid;
END $$;
REVOKE ALL ON FUNCTION posthorn.inner_id(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.inner_id(text, text) TO posthorn_lookup;
