-- The outbox of mails. Every part of Posthorn puts its mails in; the worker's mail room empties it.

-- name: InsertMail :execrows
-- No row: a mail for this purpose is there already.
INSERT INTO mails (id, tenant_id, key, recipient, kind, data, sealed, created_at)
VALUES (@id, sqlc.narg('tenant_id'), @key, @recipient, @kind, @data, sqlc.narg('sealed')::bytea, @created_at)
ON CONFLICT (key) DO NOTHING;

-- name: CountMail :one
-- One more mail of a kind that is limited: n is their number within the window that the first of them began.
SELECT c.n::int AS n, c.seconds_left::int AS seconds_left FROM posthorn.count_mail(@key, @seconds::int) AS c;

-- name: ClaimMails :many
-- Mails that are due. The claim has an end, so that another worker can take the mails of one that died; tries counts
-- it.
UPDATE mails m SET tries = m.tries + 1, due_at = now() + make_interval(secs => @seconds)
FROM (SELECT d.id FROM mails d WHERE d.state = 'waiting' AND d.due_at <= now() ORDER BY d.due_at LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) due
WHERE m.id = due.id
RETURNING m.id, m.tenant_id, m.key, m.recipient, m.kind, m.data, m.sealed, m.tries, m.created_at;

-- name: MarkMailSent :execrows
-- A sealed body had a link: it is deleted. A worker that was stopped for a while finds the mail sent.
UPDATE mails SET state = 'sent', done_at = now(), provider_id = @provider_id, last_error = @note, sealed = NULL
WHERE id = @id AND state = 'waiting';

-- name: PostponeMail :execrows
-- The provider did not take it now.
UPDATE mails SET due_at = now() + make_interval(secs => @seconds), last_error = @last_error
WHERE id = @id AND state = 'waiting';

-- name: ReturnMail :execrows
-- As PostponeMail, where the try does not count.
UPDATE mails SET due_at = now() + make_interval(secs => @seconds), last_error = @last_error, tries = greatest(tries - 1, 0)
WHERE id = @id AND state = 'waiting';

-- name: MarkMailFailed :execrows
-- It will never be sent. Operators see it, and why.
UPDATE mails SET state = 'failed', done_at = now(), last_error = @last_error, sealed = NULL
WHERE id = @id AND state = 'waiting';

-- name: DropOldMails :execrows
-- Sent mails are kept for a while for the operators' mail log, and not longer, since they name people.
DELETE FROM mails WHERE id IN (SELECT o.id FROM mails o WHERE o.state <> 'waiting' AND o.id < @before ORDER BY o.id LIMIT sqlc.arg('limit')::int);

-- name: CountMails :many
-- For the gauges.
SELECT state, count(*) AS n FROM mails WHERE state IN ('waiting', 'failed') GROUP BY state;

-- name: KeepMail :exec
-- The console driver's mailbox.
INSERT INTO mailbox (id, sealed) VALUES (@id, @sealed) ON CONFLICT (id) DO NOTHING;

-- name: DropKeptMails :exec
-- Only the newest are kept.
DELETE FROM mailbox WHERE id < (SELECT b.id FROM mailbox b ORDER BY b.id DESC OFFSET @keep::int LIMIT 1);

-- name: ListKeptMails :many
SELECT * FROM mailbox ORDER BY id DESC LIMIT sqlc.arg('limit');

-- name: WaitingMails :one
-- Mails that the console driver will soon have in its mailbox. A mail that a worker claimed is due again five minutes
-- after the claim, which can be after this transaction began.
SELECT count(*) FROM mails WHERE state = 'waiting' AND due_at <= clock_timestamp() + interval '5 minutes';

-- name: GetKeptMail :one
SELECT * FROM mailbox WHERE id = @id;
