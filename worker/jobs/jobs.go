// Package jobs runs bulk jobs: it takes the due jobs, does a chunk of each in turn, and writes the progress with it
// (db/deliveries/bulk_step.go). Any number of workers can run it. A job's lock lets one of them work on it at a time.
package jobs

import (
	"context"
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
)

const (
	// every is how soon an unannounced job, or one whose rest is over, is found.
	every = time.Second
	most  = 50
	// breath is the shortest rest between two rounds, so that jobs never use a database alone.
	breath = 5 * time.Millisecond
)

// Runner does chunks of jobs. Make it with New.
type Runner struct {
	db     *db.DB
	listen string // a direct connection for LISTEN
	log    *slog.Logger
}

// New makes a runner; it does nothing before Run.
func New(d *db.DB, listen string, log *slog.Logger) *Runner {
	return &Runner{db: d, listen: listen, log: log}
}

// Run does jobs until the context ends. A running chunk is then rolled back.
func (r *Runner) Run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	poke := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		db.Listen(ctx, r.listen, []string{db.ChannelJobs}, poke, func(string, string) { poke() })
	}()
	defer func() { <-listening }()
	for ctx.Err() == nil {
		timer := time.NewTimer(max(r.round(ctx), breath))
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// round does a chunk of each due job, and returns how long no other is due.
func (r *Runner) round(ctx context.Context) (rest time.Duration) {
	rest = every
	due, err := deliveries.DueBulkJobs(ctx, r.db, most)
	if err != nil {
		r.complain(ctx, "bulk jobs could not be read", err)
		return rest
	}
	for _, job := range due {
		step, err := deliveries.StepBulkJob(ctx, r.db, job)
		if err != nil {
			r.complain(ctx, "a chunk of a bulk job failed; it is tried again", err, "job", id.Job.Format(job.ID))
			continue
		}
		if step.Took && !step.Over {
			rest = min(rest, step.Rest)
		}
	}
	return rest
}

func (r *Runner) complain(ctx context.Context, what string, err error, about ...any) {
	if ctx.Err() == nil && !db.IsPassing(err) {
		r.log.Warn(what, append(about, "error", err)...)
	}
}
