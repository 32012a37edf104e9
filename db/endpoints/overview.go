package endpoints

import (
	"context"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/home"
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
	Moves   []home.Move // that are not finished
}

// ReadOverview reads at most so many backlogs and shares, and so many hosts. It runs as the console.
func ReadOverview(ctx context.Context, q *sql.Queries, rows, hosts int) (o Overview, err error) {
	if o.Load, err = queue.PlatformLoad(ctx, q, rows); err != nil {
		return o, err
	}
	if o.Hosts, err = Hosts(ctx, q, "", true, hosts); err != nil {
		return o, err
	}
	if o.Moves, err = accounts.UnfinishedMoves(ctx, q); err != nil {
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
	for _, m := range o.Moves {
		if m.Overdue(now) {
			f.Moves = append(f.Moves, m)
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

// Numbers are what other homes are told of this one.
func (o Overview) Numbers(now time.Time) home.Numbers {
	t := o.Load.Totals
	n := home.Numbers{Tenants: t.Tenants, Waiting: t.Waiting, DeadLetters: t.DeadLetters, Workers: t.Workers, Findings: []string{}}
	for _, f := range incidents.Find(o.Facts(now, numbersRows), words.Count[int64]) {
		n.Findings = append(n.Findings, f.Title)
	}
	return n
}

// numbersRows bounds the tenants and hosts that ReadOverview reads for Numbers.
const numbersRows = 5

// ReadNumbers is what other homes are told of this one.
func ReadNumbers(ctx context.Context, d *db.DB, now time.Time) (home.Numbers, error) {
	o, err := db.Read(ctx, d.Console, func(q *sql.Queries) (Overview, error) { return ReadOverview(ctx, q, numbersRows, numbersRows) })
	return o.Numbers(now), err
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
	for i, m := range facts.Moves {
		facts.Moves[i].Name = mail.TenantText(m.Name)
	}
	return d.Worker(ctx, func(q *sql.Queries) error {
		if err := q.NoteStoppedMoves(ctx, now); err != nil {
			return err
		}
		for _, m := range facts.Moves {
			if err := accounts.AlertOperators(ctx, q, incidents.MoveStopped, "move:"+m.Tenant+":"+now.UTC().Format(time.DateOnly), mail.OperatorAlertData{
				What:     strings.TrimSuffix(m.Title(), "."),
				Facts:    []mail.Fact{{Name: "Tenant", Value: m.Tenant}, {Name: "What to do", Value: m.Action()}},
				Link:     links.ConsoleBase() + "/console/homes",
				LinkText: "View homes",
				At:       now,
			}); err != nil {
				return err
			}
		}
		for _, a := range incidents.AlertsOf(facts, incidents.Find(facts, words.Count[int64])) {
			if err := accounts.RaiseAlert(ctx, q, links, a, now); err != nil {
				return err
			}
		}
		return accounts.EndAlerts(ctx, q, links, now)
	})
}
