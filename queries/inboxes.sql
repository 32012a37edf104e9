-- Test inboxes: the requests that Posthorn's own receiver got.

-- name: FindInbox :one
-- The inbox of a token. Runs before the tenant is known.
SELECT i.tenant_id::uuid AS tenant_id, i.endpoint_id::uuid AS endpoint_id FROM posthorn.find_inbox(@token_hash) AS i;

-- name: CountInboxes :one
SELECT count(*) FROM inboxes WHERE tenant_id = @tenant_id;

-- name: InsertInbox :exec
INSERT INTO inboxes (tenant_id, endpoint_id, hash) VALUES (@tenant_id, @endpoint_id, @hash);

-- name: GetInbox :one
SELECT * FROM inboxes WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: SetInboxAnswer :execrows
UPDATE inboxes SET answer = @answer WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND answer <> @answer;

-- name: InsertInboxRequest :exec
INSERT INTO inbox_requests (tenant_id, endpoint_id, id, method, head, body, body_bytes, challenge, answer, good, code, detail, secret_hint)
VALUES (@tenant_id, @endpoint_id, @id, @method, @head, @body, @body_bytes, @challenge, @answer, @good, @code, @detail, @secret_hint);

-- name: TrimInbox :exec
-- The newest ones stay.
DELETE FROM inbox_requests r WHERE r.tenant_id = @tenant_id AND r.endpoint_id = @endpoint_id AND r.id < (
	SELECT n.id FROM inbox_requests n WHERE n.tenant_id = @tenant_id AND n.endpoint_id = @endpoint_id ORDER BY n.id DESC LIMIT 1 OFFSET @others);

-- name: ListInboxRequests :many
-- Newest first, without requests that are too old, swept or not. The body is read one at a time.
SELECT tenant_id, endpoint_id, id, received_at, method, ''::text AS head, NULL::bytea AS body, body_bytes, challenge, answer, good, code, detail, secret_hint
FROM inbox_requests
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND received_at > now() - make_interval(secs => @kept_seconds::float8)
ORDER BY id DESC LIMIT sqlc.arg('limit');

-- name: GetInboxRequest :one
SELECT * FROM inbox_requests
WHERE tenant_id = @tenant_id AND id = @id AND received_at > now() - make_interval(secs => @kept_seconds::float8);

-- name: ClearInbox :execrows
DELETE FROM inbox_requests WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: ClearInboxes :exec
-- They can hold copies of data that is to be destroyed, and no format names the event in every request.
DELETE FROM inbox_requests WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]);

-- name: DropInbox :exec
DELETE FROM inboxes WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: SweepInboxes :execrows
DELETE FROM inbox_requests WHERE received_at < now() - make_interval(secs => @kept_seconds::float8);
