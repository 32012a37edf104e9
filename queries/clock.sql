-- The database's clock decides when work is due. If a person or NTP sets it, due times keep their distance: a retry in
-- an hour stays a retry in an hour. One row holds the sum of all steps of the clock.

-- name: LockClock :one
-- By how many seconds the clock has been seen to step so far. The transaction that holds the row is the one that moves
-- due times.
SELECT shifted FROM clock FOR UPDATE;

-- name: ShiftClock :exec
UPDATE clock SET shifted = shifted + @seconds::double precision, stepped_at = clock_timestamp();

-- name: ShiftRetries :execrows
-- Retries, but not events with a deliver_at.
UPDATE queue SET due_at = due_at + make_interval(secs => @seconds::double precision),
	tried_at = tried_at + make_interval(secs => @seconds::double precision) WHERE state = 1;

-- name: ShiftLaneWaits :exec
UPDATE lanes SET not_before = not_before + make_interval(secs => @seconds::double precision),
	asked_at = asked_at + make_interval(secs => @seconds::double precision), look_at = look_at + make_interval(secs => @seconds::double precision),
	release_before = release_before + make_interval(secs => @seconds::double precision),
	limited_until = limited_until + make_interval(secs => @seconds::double precision)
WHERE not_before IS NOT NULL OR limited_until IS NOT NULL OR release_before IS NOT NULL;

-- name: ShiftBreakers :exec
UPDATE endpoint_health SET closed_at = closed_at + make_interval(secs => @seconds::double precision) WHERE closed_at IS NOT NULL;

-- name: ClockSteppedAt :one
-- When the clock was last seen to step, by itself; null where it never was.
SELECT stepped_at FROM clock;
