package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/show"
	"posthorn/domain/words"
)

// Overview is what the platform knows of itself: for the operators' first page, and for their alerts.
type Overview struct {
	Load    show.PlatformLoad
	Hosts   []incidents.Host // failing ones
	Proxies []egress.ProxyStatus
}

// ReadOverview reads at most so many backlogs and shares, and so many hosts. It runs as the console.
func ReadOverview(ctx context.Context, q *sql.Queries, rows, hosts int) (o Overview, err error) {
	if o.Load, err = queue.PlatformLoad(ctx, q, rows); err != nil {
		return o, err
	}
	if o.Hosts, err = Hosts(ctx, q, "", true, hosts); err != nil {
		return o, err
	}
	o.Proxies, err = Proxies(ctx, q)
	return o, err
}

// Facts are what incidents are found in, with the loads of at most so many tenants.
func (o Overview) Facts(now time.Time, loads int) incidents.Facts {
	t := o.Load.Totals
	f := incidents.Facts{
		Workers:       t.Workers,
		WorkersLost:   t.WorkersLost,
		Discrepancies: t.BooksDiffer,
		Hosts:         o.Hosts,
		Rejected:      t.Rejected,
		Mails:         t.MailsFailed,
	}
	for _, p := range o.Proxies {
		if p.Failing(now) {
			f.Proxies = append(f.Proxies, p.Address)
		}
	}
	for _, l := range o.Load.Late {
		f.Late = append(f.Late, incidents.Waiting{Tenant: l.Name, For: l.For(now)})
	}
	for _, l := range o.Load.Loads(loads) {
		f.Loads = append(f.Loads, l.Load)
	}
	return f
}

// SyncAlerts opens the operators' alerts of what the overview shows, notes which causes are still there, and ends
// alerts of all kinds whose cause is over. rows bounds the backlogs, loads and hosts that it reads.
func SyncAlerts(ctx context.Context, d *db.DB, links accounts.Links, now time.Time, rows int) error {
	var o Overview
	err := d.Console(ctx, func(q *sql.Queries) (err error) {
		o, err = ReadOverview(ctx, q, rows, rows)
		return err
	})
	if err != nil {
		return err
	}
	facts := o.Facts(now, rows)
	for i, l := range facts.Loads {
		facts.Loads[i].Tenant = mail.TenantText(l.Tenant) // chats make links of what looks like one, as mail programs do
	}
	return d.Worker(ctx, func(q *sql.Queries) error {
		for _, a := range incidents.AlertsOf(facts, incidents.Find(facts, words.Count[int64])) {
			if err := accounts.RaiseAlert(ctx, q, links, a, now); err != nil {
				return err
			}
		}
		return accounts.EndAlerts(ctx, q, links, now)
	})
}
