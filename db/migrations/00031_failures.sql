-- The outcomes of an endpoint's failed attempts, by minute: the roll-ups have only classes, and pages show the
-- response.

-- +goose Up

CREATE TABLE endpoint_failures (
	tenant_id   uuid NOT NULL,
	endpoint_id uuid NOT NULL,
	bucket      timestamptz NOT NULL,
	code        smallint NOT NULL, -- the HTTP status; below zero: the failure (domain/delivery) where there was no response
	n           bigint NOT NULL,
	PRIMARY KEY (tenant_id, endpoint_id, bucket, code)
) WITH (fillfactor = 50);
SELECT posthorn.guard('endpoint_failures');
GRANT SELECT ON endpoint_failures TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_failures TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_failures TO posthorn_console;

-- They reach the roll-up through the ledger, like the numbers of attempts. An older version that folds the ledger
-- leaves them out: those are counted only by class.
ALTER TABLE ledger ADD COLUMN fail_endpoint uuid[] NOT NULL DEFAULT '{}', ADD COLUMN fail_minute int[] NOT NULL DEFAULT '{}',
	ADD COLUMN fail_code smallint[] NOT NULL DEFAULT '{}', ADD COLUMN fail_count int[] NOT NULL DEFAULT '{}';

-- Those that the ledger holds and no job has folded yet; as posthorn.unfolded_stats.
-- +goose StatementBegin
CREATE FUNCTION posthorn.unfolded_failures(tenant uuid)
RETURNS TABLE (endpoint_id uuid, minute timestamptz, code smallint, n bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, to_timestamp(u.minute::bigint * 60), u.code, u.n::bigint
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.fail_endpoint), unnest(l.fail_minute), unnest(l.fail_code), unnest(l.fail_count))
		AS u(endpoint, minute, code, n)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_failures.tenant
		AND (unfolded_failures.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.unfolded_failures(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_failures(uuid) TO posthorn_tenant, posthorn_worker, posthorn_console;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.unfolded_failures(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.unfolded_failures(uuid);
ALTER TABLE ledger DROP COLUMN fail_endpoint, DROP COLUMN fail_minute, DROP COLUMN fail_code, DROP COLUMN fail_count;
DROP TABLE endpoint_failures;
