-- Operators' control: pauses of dispatch, limits and usage of tenants, and the results of the reconciliation.

-- +goose Up

-- Both at once and in the order in which a transaction that folds the ledger takes them: nothing waits in a circle.
LOCK TABLE ledger, books IN ACCESS EXCLUSIVE MODE;

-- Events are entered in the totals along with their deliveries, by their own day. Rows of older processes have none.
ALTER TABLE ledger ADD COLUMN events int[] NOT NULL DEFAULT '{}';
ALTER TABLE books ADD COLUMN events bigint NOT NULL DEFAULT 0;
GRANT SELECT ON books TO posthorn_lookup;

-- What of a tenant's events the ledger holds and no job has folded yet. The ledger holds those of all tenants; a tenant is told its
-- own alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.events_since(tenant uuid, since date) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT coalesce((SELECT sum(b.events) FROM books b WHERE b.tenant_id = events_since.tenant AND b.day >= since), 0)::bigint
		+ coalesce((SELECT sum(u.n) FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.events)) AS u(tenant_id, day, n)
			WHERE u.tenant_id = events_since.tenant AND u.day >= since), 0)::bigint
	WHERE events_since.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_ingest', 'posthorn_worker', 'posthorn_console')
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.events_since(uuid, date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.events_since(uuid, date) TO posthorn_tenant, posthorn_ingest, posthorn_worker, posthorn_console;

-- The token bucket of a tenant with a limit of events per second: processes that take requests draw some tokens at a
-- time.
CREATE TABLE quota_buckets (
	tenant_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
	tokens    double precision NOT NULL,
	at        timestamptz NOT NULL   -- when there were so many
) WITH (fillfactor = 30);
SELECT posthorn.guard('quota_buckets');
GRANT SELECT, INSERT, UPDATE ON quota_buckets TO posthorn_ingest;
GRANT SELECT, INSERT, UPDATE, DELETE ON quota_buckets TO posthorn_console;

-- Draws up to want tokens from a bucket that fills at a rate a second up to a size, and returns how many there were.
-- +goose StatementBegin
CREATE FUNCTION posthorn.draw_tokens(of_tenant uuid, rate double precision, size double precision, want int) RETURNS int LANGUAGE plpgsql AS $$
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
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.draw_tokens(uuid, double precision, double precision, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.draw_tokens(uuid, double precision, double precision, int) TO posthorn_ingest;

-- A host as endpoints name it: with its port where the URL has one, in lower case (domain/pause).
-- +goose StatementBegin
CREATE FUNCTION posthorn.url_host(url text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN lower(substring(url FROM '^[A-Za-z]+://([^/?#]+)'));
-- +goose StatementEnd

-- Operators' pauses: nothing is sent, and nothing is lost. Workers read them once a second, and immediately after a
-- notification.
CREATE TABLE dispatch_pauses (
	id          uuid PRIMARY KEY,
	scope       text NOT NULL CHECK (scope IN ('platform', 'tenant', 'host', 'endpoint')),
	tenant_id   uuid REFERENCES tenants ON DELETE CASCADE, -- of the scopes tenant and endpoint
	host        text NOT NULL DEFAULT '',
	endpoint_id uuid,
	reason      text NOT NULL,
	actor_kind  text NOT NULL,
	actor_id    text NOT NULL DEFAULT '',
	created_at  timestamptz NOT NULL
);
-- One pause of one thing.
CREATE UNIQUE INDEX dispatch_pauses_one ON dispatch_pauses (scope, coalesce(endpoint_id, tenant_id, '00000000-0000-0000-0000-000000000000'), host);
SELECT posthorn.guard('dispatch_pauses');
GRANT SELECT ON dispatch_pauses TO posthorn_worker, posthorn_lookup;
GRANT SELECT, INSERT, DELETE ON dispatch_pauses TO posthorn_console;

-- Why nothing is sent to an endpoint although it receives: the widest pause, in a word; null: none. A tenant may ask about itself alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.paused_by(tenant uuid, endpoint uuid, url text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope FROM dispatch_pauses p
	WHERE (p.scope = 'platform' OR p.scope = 'tenant' AND p.tenant_id = paused_by.tenant OR p.scope = 'endpoint' AND p.endpoint_id = paused_by.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(paused_by.url), regexp_replace(posthorn.url_host(paused_by.url), ':[0-9]+$', '')))
		AND (paused_by.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['platform', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd

-- The endpoints that pauses concern, of one tenant or of all. Where there is no pause this costs nothing. A tenant may ask about
-- itself alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT e.id FROM dispatch_pauses p JOIN endpoints e
		ON p.scope = 'platform' OR p.scope = 'tenant' AND e.tenant_id = p.tenant_id OR p.scope = 'endpoint' AND e.id = p.endpoint_id
		OR p.scope = 'host' AND p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', ''))
	WHERE e.deleted_at IS NULL AND (of_tenant IS NULL OR e.tenant_id = of_tenant)
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.url_host(text), posthorn.paused_by(uuid, uuid, text), posthorn.paused_endpoints(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.url_host(text) TO posthorn_worker, posthorn_console, posthorn_lookup;
GRANT EXECUTE ON FUNCTION posthorn.paused_by(uuid, uuid, text), posthorn.paused_endpoints(uuid) TO posthorn_tenant, posthorn_worker, posthorn_console;

-- Pages with a discrepancy between totals and tables. A page that agrees again stays for the record, with the time.
CREATE TABLE book_differences (
	tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	day       date NOT NULL,
	found_at  timestamptz NOT NULL,
	seen_at   timestamptz NOT NULL,
	ended_at  timestamptz,              -- null: it still differs
	amount    bigint NOT NULL,          -- the greatest difference of one number
	details   jsonb NOT NULL,           -- domain/books.Finding
	PRIMARY KEY (tenant_id, day)
);
SELECT posthorn.guard('book_differences');
GRANT SELECT, INSERT, UPDATE, DELETE ON book_differences TO posthorn_worker, posthorn_console;
-- The progress of the reconciliation: the last tenant and day.
CREATE TABLE book_checks (
	name      text PRIMARY KEY,         -- 'recent' goes over yesterday and today, 'history' over the days before
	day       date NOT NULL,
	after     uuid NOT NULL,
	checked   bigint NOT NULL DEFAULT 0, -- pages, of this round
	round_at  timestamptz NOT NULL       -- when this round began
);
GRANT SELECT, INSERT, UPDATE ON book_checks TO posthorn_worker, posthorn_console;

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.events_since(uuid, date) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.paused_by(uuid, uuid, text) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.paused_endpoints(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP TABLE book_checks, book_differences;
DROP FUNCTION posthorn.paused_endpoints(uuid);
DROP FUNCTION posthorn.paused_by(uuid, uuid, text);
DROP TABLE dispatch_pauses;
DROP FUNCTION posthorn.url_host(text);
DROP FUNCTION posthorn.draw_tokens(uuid, double precision, double precision, int);
DROP TABLE quota_buckets;
DROP FUNCTION posthorn.events_since(uuid, date);
REVOKE SELECT ON books FROM posthorn_lookup;
LOCK TABLE ledger, books IN ACCESS EXCLUSIVE MODE;
ALTER TABLE ledger DROP COLUMN events;
ALTER TABLE books DROP COLUMN events;
