-- The database's clock decides what is due. Where it is set by hand or by NTP, what waits keeps its distance: a retry in an hour is
-- a retry in an hour, whatever the clock says meanwhile. One row says by how much the clock was seen to step in all.

-- name: LockClock :one
-- By how many seconds the clock has been seen to step so far. Whoever holds the row is the one that moves what waits.
SELECT shifted FROM clock FOR UPDATE;

-- name: ShiftClock :exec
UPDATE clock SET shifted = shifted + @seconds::double precision, stepped_at = clock_timestamp();

-- name: ShiftRetries :execrows
-- Retries, but not what its emitter asked to be sent at a time of day.
UPDATE queue SET due_at = due_at + make_interval(secs => @seconds::double precision),
	planned_at = planned_at + make_interval(secs => @seconds::double precision) WHERE state = 1;

-- name: ShiftLaneWaits :exec
UPDATE lanes SET not_before = not_before + make_interval(secs => @seconds::double precision) WHERE not_before IS NOT NULL;

-- name: ClockSteppedAt :one
-- When the clock was last seen to step, by itself; null where it never was.
SELECT stepped_at FROM clock;
