-- Endpoints: what subscribes. A deleted one stays as a row, for the history of its deliveries, and is found by no
-- query here.

-- name: PlatformSettings :one
-- Limits and defaults of all tenants; a tenant's own lie over them.
SELECT settings FROM platform;

-- name: CountEndpoints :one
-- Listeners have a limit of their own.
SELECT count(*) FROM endpoints WHERE tenant_id = @tenant_id AND deleted_at IS NULL AND kind <> 'listen';

-- name: InsertEndpoint :one
INSERT INTO endpoints (tenant_id, id, kind, url, description, event_types, filter, channels, format, prefix, type_field, rotation_signatures, retry_policy, retry_delays, retry_jitter,
	retry_client_errors, timeout_seconds, max_in_flight, rate_limit, burst, ordering, payload_version, accept_conflict,
	circuit_breaker, send_traceparent, verification, when_held, metadata, custom_headers, sensitive_headers, connection, slot_secret_id, created_at, external_id, wire, also_secret)
VALUES (@tenant_id, @id, @kind, @url, @description, @event_types, sqlc.narg('filter'), @channels, @format, @prefix, @type_field, @rotation_signatures, @retry_policy,
	sqlc.narg('retry_delays'), sqlc.narg('retry_jitter'), @retry_client_errors, @timeout_seconds, @max_in_flight, sqlc.narg('rate_limit'), sqlc.narg('burst'),
	@ordering, sqlc.narg('payload_version'), @accept_conflict, @circuit_breaker, @send_traceparent, @verification, @when_held, @metadata, sqlc.narg('custom_headers'),
	@sensitive_headers, sqlc.narg('connection'), sqlc.narg('slot_secret_id'), @created_at, sqlc.narg('external_id'), sqlc.narg('wire'), sqlc.narg('also_secret'))
RETURNING *;

-- name: InsertEndpointRevision :exec
INSERT INTO endpoint_revisions (tenant_id, endpoint_id, routing_version, event_types, filter, channels, status, when_held, deleted)
VALUES (@tenant_id, @endpoint_id, @routing_version, @event_types, sqlc.narg('filter'), @channels, @status, @when_held, @deleted);

-- name: GetEndpoint :one
SELECT * FROM endpoints WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL;

-- name: EndpointOfExternalID :one
SELECT id FROM endpoints WHERE tenant_id = @tenant_id AND external_id = @external_id::text AND deleted_at IS NULL;

-- name: ImportedEndpoint :one
-- The one that an import brought in. Older versions kept the external id in the metadata. Where people gave several the
-- same, the oldest.
SELECT id FROM endpoints WHERE tenant_id = @tenant_id AND deleted_at IS NULL
	AND (external_id = @external_id::text OR external_id IS NULL AND metadata ->> 'external_id' = @external_id)
ORDER BY external_id IS NULL, id LIMIT 1;

-- name: AnyEndpoint :one
-- Deleted ones too: their deliveries stay.
SELECT * FROM endpoints WHERE tenant_id = @tenant_id AND id = @id;

-- name: EndpointLabels :many
-- What lists of deliveries show of their endpoints, deleted ones too.
SELECT id, url, description, status, (deleted_at IS NOT NULL)::boolean AS gone FROM endpoints
WHERE tenant_id = @tenant_id AND id = ANY(@ids::uuid[]);

-- name: LockEndpoint :one
SELECT * FROM endpoints WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: ShareLockEndpoint :one
-- For who adds to its queue: it is neither deleted nor ordered otherwise until the transaction ends.
SELECT ordering FROM endpoints WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL FOR SHARE;

-- name: ListEndpointsNewest :many
SELECT * FROM endpoints
WHERE tenant_id = @tenant_id AND id < @before AND deleted_at IS NULL AND (@status::text = '' OR status = @status)
ORDER BY id DESC LIMIT @most;

-- name: ListEndpointsOldest :many
SELECT * FROM endpoints
WHERE tenant_id = @tenant_id AND id > @after AND deleted_at IS NULL AND (@status::text = '' OR status = @status)
ORDER BY id LIMIT @most;

-- name: UpdateEndpoint :one
-- The whole row as it is to be: the caller has locked it and changed what was asked. An endpoint's kind stays.
UPDATE endpoints SET url = @url, description = @description, event_types = @event_types, filter = sqlc.narg('filter'),
	channels = @channels, format = @format, prefix = @prefix, type_field = @type_field, rotation_signatures = @rotation_signatures,
	retry_policy = @retry_policy, retry_delays = sqlc.narg('retry_delays'), retry_jitter = sqlc.narg('retry_jitter'),
	retry_client_errors = @retry_client_errors, timeout_seconds = @timeout_seconds, max_in_flight = @max_in_flight,
	rate_limit = sqlc.narg('rate_limit'), burst = sqlc.narg('burst'), ordering = @ordering,
	payload_version = sqlc.narg('payload_version'), accept_conflict = @accept_conflict, circuit_breaker = @circuit_breaker, send_traceparent = @send_traceparent, verification = @verification,
	when_held = @when_held, metadata = @metadata, custom_headers = sqlc.narg('custom_headers'),
	sensitive_headers = @sensitive_headers, connection = sqlc.narg('connection'), external_id = sqlc.narg('external_id'), wire = sqlc.narg('wire'), also_secret = sqlc.narg('also_secret'), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: SetEndpointStatus :one
UPDATE endpoints SET status = @status, status_reason = @status_reason, status_at = now(), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: UnverifyEndpoint :one
-- Another URL has proved nothing yet.
UPDATE endpoints SET status = 'unverified', status_reason = 'url_changed', status_at = now(), verified_at = NULL, updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: SetSlotSecret :exec
UPDATE endpoints SET slot_secret_id = sqlc.narg('slot_secret_id'), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL;

-- name: DeleteEndpoint :exec
-- Softly: its deliveries still name it. What it kept secret goes at once.
UPDATE endpoints SET deleted_at = now(), updated_at = now(), custom_headers = NULL, connection = NULL, also_secret = NULL, slot_secret_id = NULL
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL;
