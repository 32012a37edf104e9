-- An endpoint's host: with the port if the URL has one, in lower case (domain/pause).
CREATE OR REPLACE FUNCTION posthorn.url_host(url text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN lower(substring(url FROM '^[A-Za-z]+://([^/?#]+)'));
REVOKE ALL ON FUNCTION posthorn.url_host(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.url_host(text) TO posthorn_console, posthorn_lookup, posthorn_worker;
