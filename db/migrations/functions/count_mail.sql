-- Counts one more mail within a window that begins with the first mail. Tenants can count, but neither read nor reset.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.count_mail(of_key bytea, seconds int)
RETURNS TABLE (n int, seconds_left int) LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	INSERT INTO mail_limits AS l (key, n, until) VALUES (of_key, 1, now() + make_interval(secs => seconds))
	ON CONFLICT (key) DO UPDATE SET
		n = CASE WHEN l.until <= now() THEN 1 ELSE l.n + 1 END,
		until = CASE WHEN l.until <= now() THEN excluded.until ELSE l.until END
	RETURNING l.n, extract(epoch FROM l.until - now())::int
$$;
REVOKE ALL ON FUNCTION posthorn.count_mail(bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.count_mail(bytea, int) TO posthorn_console, posthorn_tenant, posthorn_worker;
