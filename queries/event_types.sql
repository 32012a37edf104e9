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
-- Types whose data is checked.
SELECT name, versions FROM event_types
WHERE tenant_id = @tenant_id AND versions IS NOT NULL AND schema_check <> 'off'
ORDER BY name COLLATE "C" LIMIT sqlc.arg('limit');

-- name: ListEventTypes :many
-- Names are ASCII and compared as bytes, so that a page ends at the same name in any locale. A tenant has few types:
-- all are read and sorted.
SELECT * FROM event_types
WHERE tenant_id = @tenant_id AND (@after::text = '' OR (name COLLATE "C" < @after) = @descending::boolean AND name <> @after)
ORDER BY (CASE WHEN @descending THEN name END) COLLATE "C" DESC, name COLLATE "C" LIMIT sqlc.arg('limit');

-- name: CountEventTypes :one
SELECT count(*) FROM event_types WHERE tenant_id = @tenant_id;
