// Package notify sends notices: notices as mails, the state of tenants as daily digests and alerts, and operational
// events to the platform's own tenant and alerts to the channels of tenants and operators.
//
// Every step is a transaction that marks what it did. Steps can be repeated, on several workers and after a crash, and
// nothing is announced twice.
package notify

import (
	"context"
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/worker/loop"
)

// How often the jobs run.
const (
	lookEvery          = time.Second
	mailMost           = 20
	relayMost          = 200
	sweepLook          = 5 * time.Second // a requested sweep starts within this time
	digestEvery        = time.Hour
	overdueEvery       = 5 * time.Minute
	discrepanciesEvery = 30 * time.Second
	proxiesEvery       = 30 * time.Second
	alertsEvery        = time.Minute
	alertRows          = 50 // of loads, and of hosts
	tidyEvery          = time.Hour
	keepNotices        = 90 * 24 * time.Hour
	tidyMost           = 1000
)

// Config holds the dependencies of a notifier.
type Config struct {
	DB    *db.DB
	Links accounts.Links
	Log   *slog.Logger
}

// Notifier sends notices. Create it with New; call Run once.
type Notifier struct{ Config }

// New creates a notifier. It does nothing before Run.
func New(c Config) *Notifier {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Notifier{c}
}

// Run works until the context ends.
func (n *Notifier) Run(ctx context.Context) error {
	loop.Every(
		ctx, n.Log,
		loop.Job{Name: "mail notices", Every: lookEvery, Do: n.mail},
		loop.Job{Name: "digests", Every: sweepLook, Do: n.digests},
		loop.Job{Name: "overdue deliveries", Every: sweepLook, Do: n.overdue},
		loop.Job{Name: "alert discrepancies", Every: discrepanciesEvery, Do: n.discrepancies},
		loop.Job{Name: "alert egress proxies", Every: proxiesEvery, Do: n.proxies},
		loop.Job{Name: "operator alerts", Every: sweepLook, Do: n.alerts},
		loop.Job{
			Name:  "relay notices",
			Every: lookEvery,
			Do: func(ctx context.Context) error {
				return drain(ctx, func(ctx context.Context, most int32) (int, error) {
					return accounts.RelayNotices(ctx, n.DB, n.Links, most)
				})
			},
		},
		loop.Job{
			Name:  "announce dead letters",
			Every: lookEvery,
			Do: func(ctx context.Context) error {
				return drain(ctx, func(ctx context.Context, most int32) (int, error) {
					return accounts.AnnounceDeadLetters(ctx, n.DB, n.Links, most)
				})
			},
		},
		loop.Job{Name: "forget old notices", Every: tidyEvery, Do: n.tidy},
	)
	return nil
}

// mail puts mails for new notices into the outbox.
func (n *Notifier) mail(ctx context.Context) error {
	for {
		if taken, err := accounts.MailNotices(ctx, n.DB, n.Links, mailMost); err != nil || taken < mailMost {
			return err
		}
	}
}

// drain calls a step until nothing is left.
func drain(ctx context.Context, take func(context.Context, int32) (int, error)) error {
	for ctx.Err() == nil {
		if n, err := take(ctx, relayMost); err != nil || n < relayMost {
			return err
		}
	}
	return nil
}

// digests posts the daily digest of every tenant. An error for one tenant does not stop the others.
func (n *Notifier) digests(ctx context.Context) error {
	_, err := n.DB.Sweep(ctx, endpoints.SweepDigests, digestEvery, func(tenant id.UUID, _ string) error {
		now, err := n.DB.ServerTime(ctx)
		if err == nil {
			_, err = endpoints.PostDigest(ctx, n.DB, tenant, now)
		}
		return n.survive(ctx, err, "digest", tenant)
	})
	return err
}

// overdue alerts the operators to tenants whose deliveries wait too long.
func (n *Notifier) overdue(ctx context.Context) error {
	platform, err := accounts.Platform(ctx, n.DB)
	if err != nil {
		return err
	}
	bound := time.Duration(settings.Number(settings.OverdueMinutes, platform)) * time.Minute
	_, err = n.DB.Sweep(ctx, endpoints.SweepOverdue, overdueEvery, func(tenant id.UUID, name string) error {
		now, err := n.DB.ServerTime(ctx)
		if err == nil {
			err = endpoints.AlertOverdue(ctx, n.DB, n.Links, endpoints.Promise{
				Tenant: tenant,
				Name:   name,
				Bound:  bound,
			}, now)
		}
		return n.survive(ctx, err, "overdue", tenant)
	})
	return err
}

// discrepancies alerts the operators to differences between the ledger and the tables.
func (n *Notifier) discrepancies(ctx context.Context) error {
	now, err := n.DB.ServerTime(ctx)
	if err != nil {
		return err
	}
	return maintenance.AlertDiscrepancies(ctx, n.DB, n.Links, now)
}

// proxies alerts the operators to egress proxies that fail.
func (n *Notifier) proxies(ctx context.Context) error {
	now, err := n.DB.ServerTime(ctx)
	if err != nil {
		return err
	}
	return endpoints.AlertProxies(ctx, n.DB, n.Links, now)
}

// alerts opens the alerts of operators for what their overview shows, and ends those of all kinds whose cause is over.
// One worker does it, once a minute: the look costs as much as the operators' first page.
func (n *Notifier) alerts(ctx context.Context) error {
	due, err := n.DB.Periodic(ctx, "operator alerts", alertsEvery, func(*sql.Queries) error { return nil })
	if err != nil || !due {
		return err
	}
	now, err := n.DB.ServerTime(ctx)
	if err != nil {
		return err
	}
	return endpoints.SyncAlerts(ctx, n.DB, n.Links, now, alertRows)
}

// survive continues a sweep after an error that concerns one tenant.
func (n *Notifier) survive(ctx context.Context, err error, what string, tenant id.UUID) error {
	if err == nil || ctx.Err() != nil || db.IsUnavailable(err) {
		return err
	}
	n.Log.Warn("a tenant was left out of a sweep", "sweep", what, "tenant", id.Tenant.Format(tenant), "error", err)
	return nil
}

func (n *Notifier) tidy(ctx context.Context) error {
	return n.DB.Worker(ctx, func(q *sql.Queries) error {
		before := time.Now().Add(-keepNotices)
		if _, err := q.DropOldNotices(ctx, id.FirstAt(before), tidyMost); err != nil {
			return err
		}
		_, err := q.DropOldDigests(ctx, before)
		return err
	})
}
