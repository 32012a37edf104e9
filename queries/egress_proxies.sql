-- The proxies of the platform (under the tenant of zeros) and of tenants that differ.

-- name: LaneProxies :many
-- The proxies of the platform and of the tenants of some endpoints.
SELECT p.* FROM egress_proxies p
WHERE p.tenant_id = ANY(ARRAY(
	SELECT e.tenant_id FROM endpoints e WHERE e.id = ANY(@endpoints::uuid[])
	UNION ALL SELECT '00000000-0000-0000-0000-000000000000'::uuid OFFSET 0));

-- name: EgressProxies :many
-- Of a tenant and the platform.
SELECT * FROM egress_proxies WHERE tenant_id = ANY(ARRAY[@tenant_id::uuid, '00000000-0000-0000-0000-000000000000'::uuid]);

-- name: ListEgressProxies :many
-- The platform's first.
SELECT sqlc.embed(p), coalesce(t.name, '')::text AS tenant_name
FROM egress_proxies p LEFT JOIN tenants t ON t.id = p.tenant_id
ORDER BY p.tenant_id LIMIT 1000;

-- name: SetEgressProxy :one
INSERT INTO egress_proxies (tenant_id, type, address, username, sealed, resolve_names, published, changed_at)
VALUES (@tenant_id, @type, @address, @username, sqlc.narg('sealed'), @resolve_names, @published, now())
ON CONFLICT (tenant_id) DO UPDATE SET type = excluded.type, address = excluded.address, username = excluded.username, sealed = excluded.sealed,
	resolve_names = excluded.resolve_names, published = excluded.published, changed_at = excluded.changed_at, failed_at = NULL, failure = ''
RETURNING *;

-- name: RemoveEgressProxy :execrows
DELETE FROM egress_proxies WHERE tenant_id = @tenant_id;

-- name: NoteProxyFailure :exec
UPDATE egress_proxies SET failed_at = now(), failure = @failure WHERE tenant_id = @tenant_id AND type <> 'direct';

-- name: PublishedAddresses :many
-- Those of all proxies, for receivers' firewalls.
SELECT DISTINCT unnest(published)::text AS address FROM egress_proxies ORDER BY 1 LIMIT 1000;

-- name: FailingProxies :many
SELECT sqlc.embed(p), coalesce(t.name, '')::text AS tenant_name
FROM egress_proxies p LEFT JOIN tenants t ON t.id = p.tenant_id
WHERE p.failed_at > now() - make_interval(secs => @seconds::float8)
ORDER BY p.tenant_id LIMIT 20;
