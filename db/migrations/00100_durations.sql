-- The shortest and the longest duration of a roll-up's entry, so that no percentile lies outside of them. Older
-- processes do not write the columns: their attempts lie somewhere in their slot of the histogram.

-- +goose Up

ALTER TABLE ledger ADD COLUMN stat_least int[] NOT NULL DEFAULT '{}', ADD COLUMN stat_most int[] NOT NULL DEFAULT '{}';
ALTER TABLE endpoint_stats ADD COLUMN least_us int NOT NULL DEFAULT 0, ADD COLUMN most_us int NOT NULL DEFAULT 2147483647;

-- As unfolded_stats, which older processes read, with the durations.
-- +goose StatementBegin
CREATE FUNCTION posthorn.unfolded_attempts(tenant uuid)
RETURNS TABLE (endpoint_id uuid, event_type text, minute timestamptz, kind smallint, n bigint, us bigint, least_us int, most_us int)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, u.type, to_timestamp(u.minute::bigint * 60), u.kind, u.n::bigint, u.us, coalesce(u.least, 0), coalesce(u.most, 2147483647)
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_type), unnest(l.stat_minute),
		unnest(l.stat_kind), unnest(l.stat_count), unnest(l.stat_us), unnest(l.stat_least), unnest(l.stat_most))
		AS u(endpoint, type, minute, kind, n, us, least, most)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_attempts.tenant
		AND (unfolded_attempts.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.unfolded_attempts(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_attempts(uuid) TO posthorn_tenant, posthorn_worker, posthorn_console;
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.unfolded_attempts(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.unfolded_attempts(uuid);
ALTER TABLE endpoint_stats DROP COLUMN least_us, DROP COLUMN most_us;
ALTER TABLE ledger DROP COLUMN stat_least, DROP COLUMN stat_most;
