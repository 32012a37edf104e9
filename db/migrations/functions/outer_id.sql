-- An id as people see it: a prefix and 26 digits of Crockford's base32.
CREATE OR REPLACE FUNCTION posthorn.outer_id(prefix text, id uuid) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	bits bit varying := B'00' || ('x' || replace(id::text, '-', ''))::bit(128);
	out text := '';
BEGIN
	FOR i IN 0..25 LOOP
		out := out || substr('0123456789abcdefghjkmnpqrstvwxyz', substring(bits FROM i * 5 + 1 FOR 5)::bit(5)::int + 1, 1);
	END LOOP;
	RETURN prefix || '_' || out;
END $$;
REVOKE ALL ON FUNCTION posthorn.outer_id(text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.outer_id(text, uuid) TO posthorn_lookup;
