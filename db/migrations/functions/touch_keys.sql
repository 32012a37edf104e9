-- Records the last use of many keys, once a minute.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.touch_keys(ids uuid[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE api_keys SET last_used_at = now() WHERE id = ANY(ids)
$$;
REVOKE ALL ON FUNCTION posthorn.touch_keys(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.touch_keys(uuid[]) TO posthorn_ingest;
