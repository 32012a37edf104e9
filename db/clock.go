package db

import (
	"context"
	"math"
	"time"

	"posthorn/db/sql"
)

// clockQuiet is how long after a step of the clock nothing expires or is dropped because of its age: it gives operators
// a day to correct a clock that was set wrong.
const clockQuiet = 24 * time.Hour

// ClockStepped moves due times by as much as the database's clock stepped, so that the time between retries stays the
// same. If several workers saw the step, one of them moves the times: each passes the sum of steps that it knows (see
// Due.Shifted), and a remainder below least counts as no step.
func (d *DB) ClockStepped(ctx context.Context, from float64, step, least time.Duration) (moved time.Duration, retries int64, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		shifted, err := q.LockClock(ctx)
		if err != nil {
			return err
		}
		rest := step.Seconds() - (shifted - from)
		if math.Abs(rest) < least.Seconds() {
			return nil
		}
		moved = time.Duration(rest * float64(time.Second))
		if err := q.ShiftClock(ctx, rest); err != nil {
			return err
		}
		if err := q.ShiftLaneWaits(ctx, rest); err != nil {
			return err
		}
		if err := q.ShiftBreakers(ctx, rest); err != nil {
			return err
		}
		retries, err = q.ShiftRetries(ctx, rest)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return moved, retries, nil
}

// IsClockQuiet reports whether ages by the database's clock can be trusted at now: it has not stepped for clockQuiet.
func (d *DB) IsClockQuiet(ctx context.Context, now time.Time) (quiet bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		at, err := q.ClockSteppedAt(ctx)
		quiet = at == nil || now.Sub(*at).Abs() >= clockQuiet
		return err
	})
	return quiet && err == nil, err
}

// ClockSkew bounds how far the worker's clock, which dates attempts, can be behind that of the process that created the
// delivery.
const ClockSkew = time.Minute
