-- Sources: queues of tenants whose messages become events (docs/adr/0032-sources.md).

-- name: InsertSource :one
INSERT INTO sources (tenant_id, id, name, kind, url, connection, start, mapping)
VALUES (@tenant_id, @id, @name, @kind, @url, @connection, @start, @mapping) RETURNING *;

-- name: CountSources :one
-- All, and the others of a name.
SELECT count(*) AS total, count(*) FILTER (WHERE name = @name AND id <> @id) AS named FROM sources WHERE tenant_id = @tenant_id;

-- name: GetSource :one
SELECT * FROM sources WHERE tenant_id = @tenant_id AND id = @id;

-- name: LockSource :one
SELECT * FROM sources WHERE tenant_id = @tenant_id AND id = @id FOR UPDATE;

-- name: ListSources :many
-- In either direction, beyond an id.
SELECT * FROM sources
WHERE tenant_id = @tenant_id AND CASE WHEN @newest::boolean THEN id < @after ELSE id > @after END
ORDER BY CASE WHEN @newest THEN id END DESC, id LIMIT sqlc.arg('limit');

-- name: ChangeSource :one
-- Its reader starts again.
UPDATE sources SET name = @name, url = @url, connection = @connection, start = @start, mapping = @mapping, updated_at = now(),
	revision = revision + 1, failing_since = NULL, reason = ''
WHERE tenant_id = @tenant_id AND id = @id RETURNING *;

-- name: PauseSource :one
UPDATE sources SET paused_at = CASE WHEN @paused::boolean THEN coalesce(paused_at, now()) END, updated_at = now(), revision = revision + 1,
	owner = NULL, failing_since = NULL, reason = '', behind_since = NULL, waiting = NULL
WHERE tenant_id = @tenant_id AND id = @id RETURNING *;

-- name: DeleteSource :one
DELETE FROM sources WHERE tenant_id = @tenant_id AND id = @id RETURNING *;

-- name: ForgetSource :exec
-- Another queue has other positions and other messages.
WITH messages AS (DELETE FROM source_messages m WHERE m.tenant_id = @tenant_id AND m.source_id = @source_id)
DELETE FROM source_positions p WHERE p.tenant_id = @tenant_id AND p.source_id = @source_id;

-- name: RejectedMessage :one
SELECT r.data FROM outbox_rejected r WHERE r.tenant_id = @tenant_id AND r.source_id = @source_id AND r.id = @id;

-- name: OwnSources :many
-- The sources that a worker reads and can go on reading.
SELECT s.* FROM sources s JOIN tenants t ON t.id = s.tenant_id
WHERE s.owner = @worker::uuid AND s.paused_at IS NULL AND t.state = 'active' AND NOT t.moving;

-- name: ClaimSource :execrows
-- One of the sources that no live worker reads.
UPDATE sources s SET owner = @worker::uuid WHERE (s.tenant_id, s.id) = (
	SELECT f.tenant_id, f.id FROM sources f JOIN tenants t ON t.id = f.tenant_id
	WHERE f.paused_at IS NULL AND t.state = 'active' AND NOT t.moving
		AND (f.owner IS NULL OR NOT EXISTS (SELECT FROM workers w WHERE w.id = f.owner AND NOT w.dead))
		AND EXISTS (SELECT FROM workers w WHERE w.id = @worker AND NOT w.dead)
	ORDER BY f.id LIMIT 1 FOR UPDATE OF f SKIP LOCKED);

-- name: ReleaseSources :exec
-- All of a worker that stops, or as many as it has more than its share.
UPDATE sources s SET owner = NULL WHERE s.owner = @worker::uuid AND (s.tenant_id, s.id) IN (
	SELECT x.tenant_id, x.id FROM sources x WHERE x.owner = @worker ORDER BY x.id DESC OFFSET @keep::int);

-- name: SourceShare :one
-- How many sources each live worker reads at most.
SELECT ceil((SELECT count(*) FROM sources s WHERE s.paused_at IS NULL)::float8
	/ greatest((SELECT count(*) FROM workers w WHERE NOT w.dead), 1))::int;

-- name: HoldSource :one
-- In each transaction that takes messages: nobody pauses, changes or claims the source before it ends.
SELECT s.tenant_id FROM sources s WHERE s.tenant_id = @tenant_id AND s.id = @id AND s.owner = @worker::uuid AND s.revision = @revision FOR NO KEY UPDATE;

-- name: SourceRoom :one
-- What of a source waits to be stored, and what was rejected, each up to a bound.
SELECT w.n AS waiting, w.bytes AS waiting_bytes, r.n AS rejected, r.bytes AS rejected_bytes
FROM (SELECT count(*) AS n, coalesce(sum(o.size), 0)::bigint AS bytes FROM (
		SELECT octet_length(x.data) AS size FROM outbox x WHERE x.source_id = @source_id::uuid LIMIT @waiting_most::int) o) w
CROSS JOIN (SELECT count(*) AS n, coalesce(sum(o.size), 0)::bigint AS bytes FROM (
		SELECT octet_length(x.data) AS size FROM outbox_rejected x WHERE x.source_id = @source_id LIMIT @rejected_most::int) o) r;

-- name: SourcePositions :many
SELECT partition, next FROM source_positions WHERE tenant_id = @tenant_id AND source_id = @source_id;

-- name: StartPositions :exec
-- Of partitions without one.
INSERT INTO source_positions (tenant_id, source_id, partition, next)
SELECT @tenant_id, @source_id, u.partition, u.next FROM ROWS FROM (unnest(@partitions::int[]), unnest(@nexts::bigint[])) AS u(partition, next)
ON CONFLICT DO NOTHING;

-- name: MovePositions :execrows
-- From where this reader began alone.
UPDATE source_positions p SET next = u.next
FROM ROWS FROM (unnest(@partitions::int[]), unnest(@froms::bigint[]), unnest(@nexts::bigint[])) AS u(partition, was, next)
WHERE p.tenant_id = @tenant_id AND p.source_id = @source_id AND p.partition = u.partition AND p.next = u.was;

-- name: NoteMissed :exec
UPDATE sources SET missed = missed + @records WHERE tenant_id = @tenant_id AND id = @id;

-- name: NoteMessages :many
-- The digests that are new.
INSERT INTO source_messages (tenant_id, source_id, digest)
SELECT @tenant_id, @source_id, u.digest FROM (SELECT DISTINCT unnest(@digests::bytea[]) AS digest) u
ON CONFLICT DO NOTHING RETURNING digest;

-- name: QueueMessages :exec
INSERT INTO outbox (id, tenant_id, source_id, type, data)
SELECT u.id, @tenant_id, @source_id::uuid, '', u.data FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@datas::bytea[])) AS u(id, data);

-- name: RejectMessages :exec
INSERT INTO outbox_rejected (id, tenant_id, source_id, type, data, code, detail)
SELECT u.id, @tenant_id, @source_id::uuid, '', u.data, @code, @detail FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@datas::bytea[])) AS u(id, data);

-- name: NoteRead :exec
UPDATE sources SET last_read_at = now(), last_sent_at = coalesce(sqlc.narg('sent_at')::timestamptz, last_sent_at) WHERE tenant_id = @tenant_id AND id = @id;

-- name: NoteSource :exec
-- How a source is, as its reader sees it. An empty reason: it is read.
UPDATE sources s SET reason = @reason, failing_since = CASE WHEN @reason::text <> '' THEN coalesce(s.failing_since, now()) END,
	waiting = sqlc.narg('waiting'), behind_since = CASE WHEN sqlc.narg('waiting')::bigint > @batch::bigint THEN coalesce(s.behind_since, now()) END
WHERE s.tenant_id = @tenant_id AND s.id = @id AND s.owner = @worker::uuid AND s.revision = @revision;

-- name: SourceMappings :many
SELECT id, mapping FROM sources WHERE id = ANY(@ids::uuid[]);

-- name: ForgetMessages :execrows
DELETE FROM source_messages m WHERE (m.tenant_id, m.source_id, m.digest) IN (
	SELECT x.tenant_id, x.source_id, x.digest FROM source_messages x WHERE x.taken_at < now() - make_interval(days => @days::int) LIMIT sqlc.arg('limit')::int);

-- name: SourcesToTell :many
-- Of all tenants: those that fail, or are behind, for longer than a time.
SELECT s.* FROM sources s JOIN tenants t ON t.id = s.tenant_id
WHERE s.paused_at IS NULL AND t.state = 'active' AND least(s.failing_since, s.behind_since) < now() - make_interval(secs => @seconds)
ORDER BY s.id LIMIT 1000;

-- name: CountSourceStates :one
-- Of all tenants, for metrics and the console.
SELECT count(*) FILTER (WHERE s.paused_at IS NULL AND s.failing_since IS NULL) AS active, count(*) FILTER (WHERE s.paused_at IS NOT NULL) AS paused,
	count(*) FILTER (WHERE s.paused_at IS NULL AND s.failing_since IS NOT NULL) AS failing,
	coalesce(sum(s.waiting) FILTER (WHERE s.paused_at IS NULL), 0)::bigint AS waiting,
	coalesce(extract(epoch FROM now() - min(s.behind_since) FILTER (WHERE s.paused_at IS NULL)), 0)::double precision AS behind_seconds
FROM sources s JOIN tenants t ON t.id = s.tenant_id WHERE t.state = 'active';
