package worker

import (
	"context"
	"time"

	"posthorn/db/queue"
)

const (
	// stepLeast is what counts as a step of the database's clock; slower changes are those of any clock that is kept by
	// NTP.
	stepLeast = 5 * time.Second
	// scheduleTimeout is how long a query for due retries can run before its result is no longer trusted.
	scheduleTimeout = 10 * time.Second
	// shiftTimeout bounds the move of all retries: a million of them take some ten seconds.
	shiftTimeout = 5 * time.Minute
)

// started is the start of the time that passed returns on machines without a boot clock.
var started = time.Now()

// clock compares the database's clock with this machine's boot time, which nothing can set. The database's times
// decide. If its clock is set to another time, what waits must neither be sent at once nor an hour late. Only the
// scheduler's goroutine uses it.
type clock struct {
	bootTime func() time.Duration
	at       time.Time     // the database's clock at the last query; zero: never
	from, to time.Duration // when that query started and ended
	shifted  float64       // seconds: the sum of steps that were handled by then
}

func newClock() *clock { return &clock{bootTime: bootTime} }

// bounds is the range where the database's clock is expected during a look that starts now. Before the first look it is
// unbounded.
func (c *clock) bounds(began time.Duration) queue.ClockBounds {
	if c.at.IsZero() {
		return queue.ClockBounds{Earliest: time.Unix(0, 0), Latest: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	return queue.ClockBounds{
		Shifted:  c.shifted,
		Earliest: c.at.Add(began - c.to - stepLeast),
		Latest: c.at.Add(began - c.from + stepLeast +
			scheduleTimeout),
	}
}

// observe compares a look at the database's clock with the last one. began and ended are when the look was made. It
// returns by how much the clock has stepped, without the steps that were already handled; 0: not at all. After a step,
// later looks are compared with the one before it, until the step is handled.
func (c *clock) observe(now time.Time, shifted float64, began, ended time.Duration) (step time.Duration) {
	if !c.at.IsZero() {
		shown := now.Sub(c.at) - time.Duration((shifted-c.shifted)*float64(time.Second))
		if shown < began-c.to-stepLeast || shown > ended-c.from+stepLeast {
			return now.Sub(c.at) - (began+ended-c.from-c.to)/2
		}
	}
	c.at, c.from, c.to, c.shifted = now, began, ended, shifted
	return 0
}

// stepped moves the due times of waiting deliveries after a step of the clock, unless another worker has done so.
func (w *Worker) stepped(ctx context.Context, step time.Duration) error {
	attempt, cancel := context.WithTimeout(ctx, shiftTimeout)
	defer cancel()
	moved, retries, err := w.db.ClockStepped(attempt, w.clock.shifted, step, stepLeast)
	if err != nil || moved == 0 {
		return err
	}
	w.metrics.steps.Inc()
	w.log.Error("the database's clock was set to another time: retries were moved with it, and for a day nothing is ended or dropped because of its age",
		"step", moved.Round(time.Millisecond).String(), "retries", retries)
	return nil
}
