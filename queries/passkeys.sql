-- Passkeys, as the account role. The owner is a person or an operator.

-- name: ListPasskeys :many
SELECT * FROM passkeys WHERE person_id = @owner_id OR operator_id = @owner_id ORDER BY created_at, id;

-- name: CountPasskeys :one
SELECT count(*) FROM passkeys WHERE person_id = @owner_id OR operator_id = @owner_id;

-- name: FindPasskey :one
SELECT * FROM passkeys WHERE credential_id = @credential_id;

-- name: InsertPasskey :exec
INSERT INTO passkeys (id, person_id, operator_id, credential_id, credential, name, created_at)
VALUES (@id, sqlc.narg('person_id'), sqlc.narg('operator_id'), @credential_id, @credential, @name, now());

-- name: UsePasskey :exec
UPDATE passkeys SET credential = @credential, used_at = now() WHERE id = @id;

-- name: RenamePasskey :execrows
UPDATE passkeys SET name = @name WHERE credential_id = @credential_id AND (person_id = @owner_id OR operator_id = @owner_id);

-- name: DeletePasskey :execrows
DELETE FROM passkeys WHERE credential_id = @credential_id AND (person_id = @owner_id OR operator_id = @owner_id);
