-- Accounts of people and operators, their credentials, and one-time links. Runs as the account role.

-- name: InsertPerson :exec
INSERT INTO people (id, email, name, password, created_at) VALUES (@id, @email, @name, @password, @created_at);

-- name: FindPerson :one
-- By address, for signing in.
SELECT * FROM people WHERE email = @email;

-- name: GetPerson :one
SELECT * FROM people WHERE id = @id;

-- name: LockPerson :one
SELECT * FROM people WHERE id = @id FOR UPDATE;

-- name: SetPersonName :exec
UPDATE people SET name = @name WHERE id = @id;

-- name: SetPersonEmail :exec
UPDATE people SET email = @email WHERE id = @id;

-- name: SetPersonPassword :exec
UPDATE people SET password = @password, password_at = now() WHERE id = @id;

-- name: SetPersonTOTP :exec
-- A seed that was shown and waits for confirmation, or null.
UPDATE people SET totp = sqlc.narg('totp'), totp_at = NULL, totp_step = 0 WHERE id = @id;

-- name: ConfirmPersonTOTP :execrows
UPDATE people SET totp_at = now(), totp_step = @step WHERE id = @id AND totp IS NOT NULL AND totp_at IS NULL;

-- name: UsePersonCode :execrows
-- No row: a code of this step or a later one was taken already.
UPDATE people SET totp_step = @step WHERE id = @id AND totp_step < @step;

-- name: RequirePasskey :execrows
-- No row: it is as wanted already.
UPDATE people SET passkey_required_at = CASE WHEN @required::boolean THEN now() END
WHERE id = @id AND (passkey_required_at IS NOT NULL) <> @required::boolean;

-- name: DeletePerson :execrows
DELETE FROM people WHERE id = @id;

-- name: FindOperator :one
SELECT * FROM operators WHERE email = @email;

-- name: GetOperator :one
SELECT * FROM operators WHERE id = @id;

-- name: LockOperator :one
SELECT * FROM operators WHERE id = @id FOR UPDATE;

-- name: SetOperatorPassword :exec
UPDATE operators SET password = @password, password_at = now() WHERE id = @id;

-- name: SetOperatorTOTP :exec
UPDATE operators SET totp = sqlc.narg('totp'), totp_at = NULL, totp_step = 0 WHERE id = @id;

-- name: ConfirmOperatorTOTP :execrows
UPDATE operators SET totp_at = now(), totp_step = @step WHERE id = @id AND totp IS NOT NULL AND totp_at IS NULL;

-- name: UseOperatorCode :execrows
UPDATE operators SET totp_step = @step WHERE id = @id AND totp_step < @step;

-- name: InsertRecoveryCodes :exec
INSERT INTO recovery_codes (owner_id, hash) SELECT @owner_id::uuid, h FROM unnest(@hashes::bytea[]) AS h;

-- name: DeleteRecoveryCodes :exec
DELETE FROM recovery_codes WHERE owner_id = @owner_id;

-- name: CountRecoveryCodes :one
SELECT count(*) FROM recovery_codes WHERE owner_id = @owner_id;

-- name: UseRecoveryCode :execrows
DELETE FROM recovery_codes WHERE owner_id = @owner_id AND hash = @hash;

-- name: InsertLink :exec
INSERT INTO one_time_links (hash, purpose, person_id, operator_id, email, data, expires_at)
VALUES (@hash, @purpose, sqlc.narg('person_id'), sqlc.narg('operator_id'), @email, @data, now() + make_interval(secs => @lives::int));

-- name: PeekLink :one
-- The purpose of a link. It does not use the link up: mail programs open links before people do.
SELECT * FROM one_time_links WHERE hash = @hash AND purpose = @purpose AND expires_at > now();

-- name: UseLink :one
DELETE FROM one_time_links WHERE hash = @hash AND purpose = @purpose AND expires_at > now() RETURNING *;

-- name: DeleteLinksOf :exec
-- Of a person or an operator.
DELETE FROM one_time_links WHERE (person_id = @owner_id OR operator_id = @owner_id) AND purpose = @purpose;

-- name: CountTry :one
-- One more try at something, before it is known whether it succeeds: many at once count as many. n is the number within
-- the window that the first of them began.
INSERT INTO account_limits (key, n, until) VALUES (@key, 1, now() + make_interval(secs => @seconds::int))
ON CONFLICT (key) DO UPDATE SET
	n = CASE WHEN account_limits.until <= now() THEN 1 ELSE account_limits.n + 1 END,
	until = CASE WHEN account_limits.until <= now() THEN excluded.until ELSE account_limits.until END
RETURNING n, extract(epoch FROM until - now())::int AS seconds_left;

-- name: ForgetTries :exec
DELETE FROM account_limits WHERE key = @key;
