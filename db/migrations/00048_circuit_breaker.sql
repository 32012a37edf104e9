-- An endpoint can do without a circuit breaker: its deliveries then keep to their schedules while it fails.

-- +goose Up

ALTER TABLE endpoints ADD COLUMN circuit_breaker boolean NOT NULL DEFAULT true;

-- A breaker that is closed on record is closed now, whatever the counters say. Breakers that only the counters had
-- open are entered.
UPDATE endpoint_health SET breaker_state = 1, opened_at = last_failure_at, next_probe_at = last_failure_at + interval '1 minute'
WHERE breaker_state = 0 AND consecutive_failures >= 10 AND last_failure_at IS NOT NULL;

-- +goose Down

ALTER TABLE endpoints DROP COLUMN circuit_breaker;
