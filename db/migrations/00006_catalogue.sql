-- Numbers of a tenant's attempts.

-- +goose Up

-- The attempts of a tenant's endpoints that the ledger holds and no job has folded into the roll-ups yet: seconds' worth. The
-- ledger holds those of all tenants; a tenant is told its own alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.unfolded_stats(tenant uuid)
RETURNS TABLE (endpoint_id uuid, event_type text, minute timestamptz, kind smallint, n bigint, us bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, u.type, to_timestamp(u.minute::bigint * 60), u.kind, u.n::bigint, u.us
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_type), unnest(l.stat_minute),
		unnest(l.stat_kind), unnest(l.stat_count), unnest(l.stat_us)) AS u(endpoint, type, minute, kind, n, us)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_stats.tenant
		AND (unfolded_stats.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.unfolded_stats(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_stats(uuid) TO posthorn_tenant, posthorn_worker, posthorn_console;
GRANT SELECT ON ledger, endpoints TO posthorn_lookup;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.unfolded_stats(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

CREATE INDEX dead_letters_recent ON dead_letters (tenant_id, failed_at);

-- +goose Down

DROP INDEX dead_letters_recent;
REVOKE SELECT ON ledger, endpoints FROM posthorn_lookup;
DROP FUNCTION posthorn.unfolded_stats(uuid);
