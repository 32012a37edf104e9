-- Test inboxes: endpoints whose receiver is Posthorn itself, and the requests that they got.

-- +goose Up

-- An inbox is an endpoint of the kind inbox, which is sent to this server's own receiver without a connection. This is
-- the receiver's state.
CREATE TABLE inboxes (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id uuid NOT NULL,
	hash        bytea NOT NULL UNIQUE, -- SHA-256 of the token in the URL
	answer      text NOT NULL DEFAULT '200' CHECK (answer IN ('200', '500', '410', 'slow')),
	created_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, endpoint_id)
);
SELECT posthorn.guard('inboxes');
GRANT SELECT, INSERT, UPDATE, DELETE ON inboxes TO posthorn_tenant;
GRANT SELECT ON inboxes TO posthorn_lookup;
GRANT SELECT, INSERT, UPDATE, DELETE ON inboxes TO posthorn_console;

-- The newest requests of each inbox, for a day.
CREATE TABLE inbox_requests (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id uuid NOT NULL,
	id          uuid NOT NULL,
	received_at timestamptz NOT NULL DEFAULT now(),
	method      text NOT NULL,
	head        text NOT NULL,            -- lines of name and value
	body        bytea NOT NULL,           -- its beginning
	body_bytes  int NOT NULL,             -- of the whole body
	challenge   boolean NOT NULL,         -- a verification, which was echoed
	answer      text NOT NULL,            -- what the inbox was told to answer
	good        boolean NOT NULL,         -- the signature
	code        text NOT NULL DEFAULT '', -- why it is refused
	detail      text NOT NULL DEFAULT '',
	secret_hint text NOT NULL DEFAULT '', -- of the secret that it verifies with
	PRIMARY KEY (tenant_id, endpoint_id, id)
);
CREATE INDEX ON inbox_requests (received_at);
SELECT posthorn.guard('inbox_requests');
GRANT SELECT, INSERT, DELETE ON inbox_requests TO posthorn_tenant;
GRANT SELECT, DELETE ON inbox_requests TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON inbox_requests TO posthorn_console;

-- Whose inbox is this? Answers before a tenant is known, and only to who holds the token.
-- +goose StatementBegin
CREATE FUNCTION posthorn.find_inbox(token_hash bytea) RETURNS TABLE (tenant_id uuid, endpoint_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT i.tenant_id, i.endpoint_id FROM inboxes i WHERE i.hash = find_inbox.token_hash
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.find_inbox(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_inbox(bytea) TO posthorn_ingest;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.find_inbox(bytea) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.find_inbox(bytea);
DROP TABLE inbox_requests, inboxes;
