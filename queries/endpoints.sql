-- Endpoints. The row of a deleted one stays for the history of its deliveries; no query here finds it.

-- name: PlatformSettings :one
-- Limits and defaults of all tenants; a tenant's own lie over them.
SELECT settings FROM platform;

-- name: CountEndpoints :one
-- Listeners and subscriptions of AI clients have separate limits.
SELECT (count(*) - (SELECT count(*) FROM subscriptions s WHERE s.tenant_id = @tenant_id))::bigint FROM endpoints
WHERE tenant_id = @tenant_id AND deleted_at IS NULL AND kind <> 'listen';

-- name: StoreEndpoint :one
-- A new endpoint, or all settings of one that the caller has locked: its kind, its secrets and its age stay.
INSERT INTO endpoints (tenant_id, id, kind, url, description, event_types, filter, channels, format, prefix, type_field, rotation_signatures, retry_policy, retry_delays, retry_jitter, retry_full,
	retry_client_errors, timeout_seconds, max_in_flight, rate_limit, burst, ordering, payload_version, accept_conflict,
	circuit_breaker, send_traceparent, verification, when_held, metadata, custom_headers, sensitive_headers, connection, slot_secret_id, created_at, external_id, wire, also_secret, public_signature, credentials, certificate_ends_at, transformation, expires_after_seconds,
	batch_max_events, batch_max_wait_ms, batch_max_bytes, large_payloads)
VALUES (@tenant_id, @id, @kind, @url, @description, @event_types, sqlc.narg('filter'), @channels, @format, @prefix, @type_field, @rotation_signatures, @retry_policy,
	sqlc.narg('retry_delays'), sqlc.narg('retry_jitter'), @retry_full, @retry_client_errors, @timeout_seconds, @max_in_flight, sqlc.narg('rate_limit'), sqlc.narg('burst'),
	@ordering, sqlc.narg('payload_version'), @accept_conflict, @circuit_breaker, @send_traceparent, @verification, @when_held, @metadata, sqlc.narg('custom_headers'),
	@sensitive_headers, sqlc.narg('connection'), sqlc.narg('slot_secret_id'), @created_at, sqlc.narg('external_id'), sqlc.narg('wire'), sqlc.narg('also_secret'), @public_signature, sqlc.narg('credentials'), sqlc.narg('certificate_ends_at'), sqlc.narg('transformation'), sqlc.narg('expires_after_seconds'),
	sqlc.narg('batch_max_events'), sqlc.narg('batch_max_wait_ms'), sqlc.narg('batch_max_bytes'), @large_payloads)
ON CONFLICT (tenant_id, id) DO UPDATE SET
	url = excluded.url, description = excluded.description, event_types = excluded.event_types, filter = excluded.filter, channels = excluded.channels,
	format = excluded.format, prefix = excluded.prefix, type_field = excluded.type_field, rotation_signatures = excluded.rotation_signatures,
	retry_policy = excluded.retry_policy, retry_delays = excluded.retry_delays, retry_jitter = excluded.retry_jitter, retry_full = excluded.retry_full,
	retry_client_errors = excluded.retry_client_errors, timeout_seconds = excluded.timeout_seconds, max_in_flight = excluded.max_in_flight,
	rate_limit = excluded.rate_limit, burst = excluded.burst, ordering = excluded.ordering, payload_version = excluded.payload_version,
	accept_conflict = excluded.accept_conflict, circuit_breaker = excluded.circuit_breaker, send_traceparent = excluded.send_traceparent,
	verification = excluded.verification, when_held = excluded.when_held, metadata = excluded.metadata, custom_headers = excluded.custom_headers,
	sensitive_headers = excluded.sensitive_headers, connection = excluded.connection, external_id = excluded.external_id, wire = excluded.wire,
	also_secret = excluded.also_secret, public_signature = excluded.public_signature, credentials = excluded.credentials,
	certificate_ends_at = excluded.certificate_ends_at, transformation = excluded.transformation, expires_after_seconds = excluded.expires_after_seconds,
	batch_max_events = excluded.batch_max_events, batch_max_wait_ms = excluded.batch_max_wait_ms, batch_max_bytes = excluded.batch_max_bytes,
	large_payloads = excluded.large_payloads, updated_at = now()
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

-- name: LockEndpoint :one
SELECT * FROM endpoints WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL FOR NO KEY UPDATE;

-- name: ShareLockEndpoint :one
-- For who adds to its queue: it is neither deleted nor ordered otherwise until the transaction ends.
SELECT ordering FROM endpoints WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL FOR SHARE;

-- name: ListEndpoints :many
-- In either direction, beyond a row. Of no kind: all but listeners; of *: all.
SELECT * FROM endpoints
WHERE tenant_id = @tenant_id AND CASE WHEN @newest::boolean THEN id < @after ELSE id > @after END
	AND deleted_at IS NULL AND (@status::text = '' OR status = @status)
	AND CASE @kind::text WHEN '' THEN kind <> 'listen' WHEN '*' THEN true ELSE kind = @kind END
ORDER BY CASE WHEN @newest THEN id END DESC, id LIMIT sqlc.arg('limit');

-- name: SetEndpointStatus :one
UPDATE endpoints SET status = @status, status_reason = @status_reason, status_at = now(), resume_at = NULL, updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: SetResumeAt :one
-- When a paused endpoint is resumed; null: when somebody resumes it.
UPDATE endpoints SET resume_at = sqlc.narg('resume_at'), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND status = 'paused' AND deleted_at IS NULL
RETURNING *;

-- name: ResumeDue :many
-- Paused endpoints whose pause has an end that has come.
SELECT tenant_id, id FROM endpoints WHERE resume_at <= @now::timestamptz AND status = 'paused' AND deleted_at IS NULL
ORDER BY resume_at LIMIT sqlc.arg('limit')::int;

-- name: MuteEndpoint :one
-- Without a time its alerts are not muted; without an end, until it recovers.
UPDATE endpoints SET muted_at = sqlc.narg('muted_at'), muted_until = sqlc.narg('muted_until'), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: UnmuteRecovered :exec
-- An endpoint that recovered, and whose alerts were muted until then.
UPDATE endpoints SET muted_at = NULL WHERE tenant_id = @tenant_id AND id = @id AND muted_at IS NOT NULL AND muted_until IS NULL;

-- name: UnverifyEndpoint :one
-- Another URL has proved nothing yet.
UPDATE endpoints SET status = 'unverified', status_reason = 'url_changed', status_at = now(), verified_at = NULL, resume_at = NULL, updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: SetSlotSecret :exec
UPDATE endpoints SET slot_secret_id = sqlc.narg('slot_secret_id'), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL;

-- name: DeleteEndpoint :exec
-- The row stays, since its deliveries name it. Its secrets are deleted at once.
UPDATE endpoints SET deleted_at = now(), updated_at = now(), custom_headers = NULL, connection = NULL, also_secret = NULL, credentials = NULL, certificate_ends_at = NULL, slot_secret_id = NULL
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL;

-- name: EndingCertificates :many
-- Endpoints whose client certificate expires by a moment, the first first, beyond one.
SELECT tenant_id, id, url, description, certificate_ends_at::timestamptz AS ends_at FROM endpoints
WHERE certificate_ends_at <= @before::timestamptz AND deleted_at IS NULL AND (certificate_ends_at, id) > (@after_ends::timestamptz, @after_id::uuid)
ORDER BY certificate_ends_at, id LIMIT sqlc.arg('limit')::int;

-- name: MutedUntilRecovery :many
-- Endpoints whose alerts are muted until they recover.
SELECT tenant_id, id FROM endpoints WHERE muted_at IS NOT NULL AND muted_until IS NULL AND deleted_at IS NULL AND id > @after
ORDER BY id LIMIT sqlc.arg('limit')::int;
