-- What tenants can use and have used.

-- name: DrawTokens :one
-- From the bucket of a tenant's events a second: fewer where there are not so many.
SELECT posthorn.draw_tokens(@tenant_id, @rate::double precision, @size::double precision, @want::int)::int AS drawn;

-- name: EventsSince :one
-- A tenant's events of the days since one, exactly: what no job has folded yet included.
SELECT coalesce(posthorn.events_since(@tenant_id, @since::date), 0)::bigint AS events;

-- name: MonthsEvents :many
-- What tenants have emitted since a day, as far as it is folded: some seconds are missing. Only tenants that the
-- platform's settings or their own can limit.
SELECT t.id, t.settings, coalesce(sum(b.events), 0)::bigint AS events
FROM tenants t JOIN books b ON b.tenant_id = t.id AND b.day >= @since::date
WHERE t.state <> 'deleted' AND (@everybody::boolean OR t.settings ? 'limits')
GROUP BY t.id, t.settings
HAVING sum(b.events) > 0;
