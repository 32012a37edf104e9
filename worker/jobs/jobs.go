// Package jobs runs bulk jobs: it takes the due jobs, does a chunk of each in turn, and writes the progress with it
// (db/deliveries/bulk_step.go). Any number of workers can run it. A job's lock lets one of them work on it at a time.
package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
	"posthorn/worker/loop"
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
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() {
		db.Listen(ctx, r.listen, []string{db.ChannelJobs}, func() { loop.Wake(wake) }, func(string, string) { loop.Wake(wake) })
	})
	loop.Every(ctx, r.log, loop.Job{Name: "bulk jobs", Every: every, Do: r.rounds, Woken: wake})
}

// rounds does chunks until no job is due for a while.
func (r *Runner) rounds(ctx context.Context) error {
	for {
		rest, err := r.round(ctx)
		if err != nil || rest >= every || !loop.Sleep(ctx, max(rest, breath)) {
			return err
		}
	}
}

// round does a chunk of each due job, and returns how long no other is due.
func (r *Runner) round(ctx context.Context) (rest time.Duration, err error) {
	due, err := deliveries.DueBulkJobs(ctx, r.db, most)
	if err != nil {
		return 0, err
	}
	rest = every
	for _, job := range due {
		step, err := deliveries.StepBulkJob(ctx, r.db, job)
		if err != nil {
			if ctx.Err() == nil && !db.IsPassing(err) {
				r.log.Warn("a chunk of a bulk job failed; it is tried again", "job", id.Job.Format(job.ID), "error", err)
			}
			continue
		}
		if step.Took && !step.Over {
			rest = min(rest, step.Rest)
		}
	}
	return rest, nil
}
