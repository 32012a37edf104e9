-- Limits and usage of tenants.

-- name: DrawTokens :one
-- From the bucket of a tenant's events per second: fewer if the bucket has fewer.
SELECT posthorn.draw_tokens(@tenant_id, @rate::double precision, @size::double precision, @want::int)::int AS drawn;

-- name: EventsSince :one
-- A tenant's events since a day, exactly, with those that no job has folded yet.
SELECT coalesce(posthorn.events_since(@tenant_id, @since::date), 0)::bigint AS events;

-- name: MonthsEvents :many
-- Tenants' events since a day, as far as they are folded: the last seconds are missing. Only tenants that the
-- platform's settings or their own can limit.
SELECT t.id, t.settings, coalesce(sum(b.events), 0)::bigint AS events
FROM tenants t JOIN books b ON b.tenant_id = t.id AND b.day >= @since::date
WHERE t.state <> 'deleted' AND (@everybody::boolean OR t.settings ? 'limits')
GROUP BY t.id, t.settings
HAVING sum(b.events) > 0;
