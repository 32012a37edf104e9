-- How long an endpoint's own limits held a delivery back before its first attempt. The status page leaves that time out, as it promises.

-- +goose Up

ALTER TABLE attempts ADD COLUMN held_ms int NOT NULL DEFAULT 0; -- rate limit, concurrency, order, Retry-After and circuit breaker

-- +goose Down

ALTER TABLE attempts DROP COLUMN held_ms;
