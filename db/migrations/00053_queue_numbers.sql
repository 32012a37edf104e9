-- The group commit learns the numbers of the queue rows that it inserts, so that a worker of the same process need not read them.

-- +goose Up
GRANT SELECT (seq, delivery_id) ON queue TO posthorn_ingest;

-- +goose Down
REVOKE SELECT (seq, delivery_id) ON queue FROM posthorn_ingest;
