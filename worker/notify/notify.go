// Package notify turns what happened into what people hear of: notices into mails, the state of tenants into daily digests
// and alerts, and what the platform itself wants to know into events of its own tenant.
//
// Every step is a transaction that marks what it did. Steps may be repeated, on several workers and after any death, and
// nothing is told twice.
package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/settings"
)

// How often the work is looked at, and sweeps are made.
const (
	lookEvery    = time.Second
	mailMost     = 20
	relayMost    = 200
	sweepLook    = 5 * time.Second // a sweep that is asked for from outside waits at most so long
	digestEvery  = time.Hour
	overdueEvery = 5 * time.Minute
	booksEvery   = 30 * time.Second
	tidyEvery    = time.Hour
	keepNotices  = 90 * 24 * time.Hour
	tidyMost     = 1000
)

// Config is what a notifier works with.
type Config struct {
	DB    *db.DB
	Links db.Links
	Log   *slog.Logger
}

// Notifier makes notices known. Make it with New; Run it once.
type Notifier struct{ Config }

// New makes a notifier; it does nothing before Run.
func New(c Config) *Notifier {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Notifier{c}
}

// Run works until the context ends: each job in a loop of its own, so that a slow one delays no other.
func (n *Notifier) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	for _, job := range []struct {
		name  string
		every time.Duration
		do    func(context.Context) error
	}{
		{"mail notices", lookEvery, n.mail},
		{"digests", sweepLook, n.digests},
		{"overdue deliveries", sweepLook, n.overdue},
		{"differences of the books", booksEvery, n.books},
		{"relay notices", lookEvery, func(ctx context.Context) error { return drain(ctx, n.DB.RelayNotices) }},
		{"announce dead letters", lookEvery, func(ctx context.Context) error { return drain(ctx, n.DB.AnnounceDeadLetters) }},
		{"forget old notices", tidyEvery, n.tidy},
	} {
		group.Go(func() {
			for {
				if err := job.do(ctx); err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
					n.Log.Warn("a job of notices failed", "job", job.name, "error", err)
				}
				select {
				case <-time.After(job.every):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return nil
}

// mail puts mails for new notices into the outbox.
func (n *Notifier) mail(ctx context.Context) error {
	for {
		if taken, err := n.DB.MailNotices(ctx, n.Links, mailMost); err != nil || taken < mailMost {
			return err
		}
	}
}

// drain takes what there is, some at a time.
func drain(ctx context.Context, take func(context.Context, int32) (int, error)) error {
	for ctx.Err() == nil {
		if n, err := take(ctx, relayMost); err != nil || n < relayMost {
			return err
		}
	}
	return nil
}

// digests posts the daily summary of every tenant that needs one. A tenant that can't be summarised keeps nobody else from it.
func (n *Notifier) digests(ctx context.Context) error {
	_, err := n.DB.Sweep(ctx, db.SweepDigests, digestEvery, func(tenant id.UUID, _ string) error {
		now, err := n.DB.ServerTime(ctx)
		if err == nil {
			_, err = n.DB.PostDigest(ctx, tenant, now)
		}
		return n.survive(ctx, err, "digest", tenant)
	})
	return err
}

// overdue alerts the operators of tenants whose deliveries wait too long.
func (n *Notifier) overdue(ctx context.Context) error {
	platform, err := n.DB.Platform(ctx)
	if err != nil {
		return err
	}
	bound := time.Duration(settings.Number(settings.OverdueMinutes, platform)) * time.Minute
	_, err = n.DB.Sweep(ctx, db.SweepOverdue, overdueEvery, func(tenant id.UUID, name string) error {
		now, err := n.DB.ServerTime(ctx)
		if err == nil {
			err = n.DB.AlertOverdue(ctx, n.Links, tenant, name, bound, now)
		}
		return n.survive(ctx, err, "overdue", tenant)
	})
	return err
}

// books alerts the operators where the books were found to differ from the tables.
func (n *Notifier) books(ctx context.Context) error {
	now, err := n.DB.ServerTime(ctx)
	if err != nil {
		return err
	}
	return n.DB.AlertBooks(ctx, n.Links, now)
}

// survive lets a sweep go on after an error that concerns one tenant.
func (n *Notifier) survive(ctx context.Context, err error, what string, tenant id.UUID) error {
	if err == nil || ctx.Err() != nil || db.IsUnavailable(err) {
		return err
	}
	n.Log.Warn("a tenant was left out of a sweep", "sweep", what, "tenant", id.Tenant.Format(tenant), "error", err)
	return nil
}

func (n *Notifier) tidy(ctx context.Context) error {
	return n.DB.Worker(ctx, func(q *db.Queries) error {
		before := time.Now().Add(-keepNotices)
		if _, err := q.DropOldNotices(ctx, db.DropOldNoticesParams{Before: db.FirstID(before), Most: tidyMost}); err != nil {
			return err
		}
		_, err := q.DropOldDigests(ctx, before)
		return err
	})
}
