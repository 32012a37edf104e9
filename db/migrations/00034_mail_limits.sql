-- How many mails a tenant had sent of late, by a hash of the kind of mail, its address and its tenant.

-- +goose Up

CREATE TABLE mail_limits (
	key   bytea PRIMARY KEY,
	n     int NOT NULL,
	until timestamptz NOT NULL
);
CREATE INDEX ON mail_limits (until);

-- Counts one more mail within a window that begins with the first of them. Tenants can count, and neither read nor reset.
-- +goose StatementBegin
CREATE FUNCTION posthorn.count_mail(of_key bytea, seconds int)
RETURNS TABLE (n int, seconds_left int) LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	INSERT INTO mail_limits AS l (key, n, until) VALUES (of_key, 1, now() + make_interval(secs => seconds))
	ON CONFLICT (key) DO UPDATE SET
		n = CASE WHEN l.until <= now() THEN 1 ELSE l.n + 1 END,
		until = CASE WHEN l.until <= now() THEN excluded.until ELSE l.until END
	RETURNING l.n, extract(epoch FROM l.until - now())::int
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.count_mail(bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.count_mail(bytea, int) TO posthorn_tenant, posthorn_console, posthorn_worker;

GRANT SELECT, INSERT, UPDATE ON mail_limits TO posthorn_lookup;
GRANT SELECT (key, until), DELETE ON mail_limits TO posthorn_worker;

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.count_mail(bytea, int) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.count_mail(bytea, int);
DROP TABLE mail_limits;
