-- Bulk jobs: a change of many deliveries or events on request, and its progress.

-- +goose Up

-- The row is the job (docs/adr/0004-jobs.md): a worker locks it, does a chunk, and writes the progress in the same
-- transaction, so that the lock is the lease and a kill anywhere neither loses nor doubles a row.
CREATE TABLE bulk_jobs (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id         uuid NOT NULL,
	kind       text NOT NULL CHECK (kind IN ('replay', 'replay_missing', 'retry_now', 'cancel', 'archive', 'unarchive', 'drop', 'expunge')),
	filter     jsonb NOT NULL DEFAULT '{}',          -- domain/bulk.Filter
	state      text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'canceled', 'failed')),
	expected   bigint NOT NULL DEFAULT 0,            -- how many it was to concern when it was asked for
	exact      boolean NOT NULL DEFAULT true,        -- false: at least so many, where the count went over its bound
	done       bigint NOT NULL DEFAULT 0,
	skipped    jsonb NOT NULL DEFAULT '{}',          -- counts by reason
	position   uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000', -- the last id that was looked at
	pace       int CHECK (pace BETWEEN 1 AND 10000), -- rows a second, at most; null: as fast as it goes
	horizon    bigint,                               -- a transaction's number: what might still come is older (worker/lanes/watermark.go)
	asked_kind text NOT NULL,                        -- who asked, as in the audit log
	asked_by   text NOT NULL DEFAULT '',
	reason     text NOT NULL DEFAULT '',
	failure    text NOT NULL DEFAULT '',             -- why it failed, in plain words
	tries      int NOT NULL DEFAULT 0,               -- chunks that failed since the last that did not
	due_at     timestamptz NOT NULL DEFAULT now(),   -- of its next chunk
	created_at timestamptz NOT NULL,
	started_at timestamptz,
	ended_at   timestamptz,
	PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 50);
CREATE INDEX bulk_jobs_due ON bulk_jobs (due_at) WHERE state IN ('queued', 'running');
SELECT posthorn.guard('bulk_jobs');
GRANT SELECT, INSERT, UPDATE ON bulk_jobs TO posthorn_tenant, posthorn_worker;
GRANT DELETE ON bulk_jobs TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON bulk_jobs TO posthorn_console;

-- The job that created a delivery: it has the author and the reason.
ALTER TABLE deliveries ADD COLUMN job_id uuid;

-- Rows of the queue up to this number were held and are to be dropped: the lane's owner reads above it.
ALTER TABLE lanes ADD COLUMN drop_below bigint NOT NULL DEFAULT 0;

-- Expunging deletes the data that was sent, and the responses; the rows stay.
GRANT UPDATE (data) ON events TO posthorn_tenant;
GRANT UPDATE (response_headers, response_excerpt) ON attempts TO posthorn_tenant;
GRANT UPDATE (details) ON notices TO posthorn_tenant;

-- A digest of a body that can be guessed tells the body: the digests of expunged events go as well, and a repeat under their
-- idempotency keys is refused from then on. The tenant is the transaction's, not an argument.
-- +goose StatementBegin
CREATE FUNCTION posthorn.forget_bodies(events uuid[]) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE idempotency_keys SET body_hash = '' WHERE tenant_id = posthorn.tenant() AND event_id = ANY(events)
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.forget_bodies(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.forget_bodies(uuid[]) TO posthorn_tenant;
GRANT SELECT, UPDATE ON idempotency_keys TO posthorn_lookup;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.forget_bodies(uuid[]) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.forget_bodies(uuid[]);
REVOKE SELECT, UPDATE ON idempotency_keys FROM posthorn_lookup;

REVOKE UPDATE (details) ON notices FROM posthorn_tenant;
REVOKE UPDATE (response_headers, response_excerpt) ON attempts FROM posthorn_tenant;
REVOKE UPDATE (data) ON events FROM posthorn_tenant;
ALTER TABLE lanes DROP COLUMN drop_below;
ALTER TABLE deliveries DROP COLUMN job_id;
DROP TABLE bulk_jobs;
