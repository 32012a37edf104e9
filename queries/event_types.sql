-- The catalogue of event types.

-- name: InsertEventType :execrows
-- No row: the name is taken.
INSERT INTO event_types (tenant_id, name, description, type_group, schema, example, schema_check, deprecated, versions)
VALUES (@tenant_id, @name, @description, @type_group, sqlc.narg('schema'), sqlc.narg('example'), @schema_check, @deprecated, sqlc.narg('versions'))
ON CONFLICT DO NOTHING;

-- name: GetEventType :one
SELECT * FROM event_types WHERE tenant_id = @tenant_id AND name = @name;

-- name: UpdateEventType :one
UPDATE event_types SET description = @description, type_group = @type_group, schema = sqlc.narg('schema'), example = sqlc.narg('example'),
	schema_check = @schema_check, deprecated = @deprecated, versions = sqlc.narg('versions'), updated_at = now()
WHERE tenant_id = @tenant_id AND name = @name RETURNING *;

-- name: DeleteEventType :execrows
DELETE FROM event_types WHERE tenant_id = @tenant_id AND name = @name;

-- name: VersionedEventTypes :many
-- Those whose versions are checked.
SELECT name, versions FROM event_types
WHERE tenant_id = @tenant_id AND versions IS NOT NULL AND schema_check <> 'off'
ORDER BY name COLLATE "C" LIMIT @most;

-- name: ListEventTypesUp :many
-- Names are ASCII and compared as bytes, so that a page's end means the same whatever the database's language.
SELECT * FROM event_types WHERE tenant_id = @tenant_id AND name COLLATE "C" > @after::text
ORDER BY name COLLATE "C" LIMIT @most;

-- name: ListEventTypesDown :many
SELECT * FROM event_types WHERE tenant_id = @tenant_id AND (name COLLATE "C" < @after::text OR @after::text = '')
ORDER BY name COLLATE "C" DESC LIMIT @most;

-- name: CountEventTypes :one
SELECT count(*) FROM event_types WHERE tenant_id = @tenant_id;
