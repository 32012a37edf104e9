package maintenance

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/reconcile"
)

// The ledger is reconciled by two jobs: one for yesterday and today, the other for all days before, so that a long
// history does not delay the results for today.
const (
	checkRecent  = "recent"
	checkHistory = "history"
	// pagesMost bounds the tenants of one query, sliceMost its deliveries (a page is counted whole), stepsMost the
	// queries of one run, and rowsNamed the deliveries that a finding names.
	pagesMost = 200
	sliceMost = 4000
	stepsMost = 70
	rowsNamed = 20
	// restMost bounds the time between two queries.
	restMost = time.Second
)

// reconcileJob names the periodic job of a check.
func reconcileJob(check string) string { return "check the books: " + check }

// ReadReconcileState returns the present difference between the ledger and the tables, and how long ago yesterday and
// today were last compared.
func ReadReconcileState(ctx context.Context, q *sql.Queries) (sql.ReconcileStateRow, error) {
	return q.ReconcileState(ctx, reconcileJob(checkRecent))
}

// Reconcile compares pages of the ledger with the tables, from where the last call stopped, until about this many
// deliveries have been counted; a page is counted whole. If any worker did this less than a while ago, it does nothing.
// It stores the discrepancies that it finds, with their rows, and ends those that no longer exist.
func Reconcile(ctx context.Context, d *db.DB, every time.Duration, budget int64) (discrepancies int, err error) {
	days, err := PartitionDays(ctx, d)
	if err != nil {
		return 0, err
	}
	now, err := d.ServerTime(ctx)
	if err != nil {
		return 0, err
	}
	recent, history := reconcile.Split(days, now)
	for name, of := range map[string][]time.Time{checkRecent: recent, checkHistory: history} {
		if len(of) == 0 {
			continue
		}
		_, err := d.Periodic(ctx, reconcileJob(name), every, func(q *sql.Queries) error {
			found, err := reconcileDays(ctx, q, name, of, budget)
			discrepancies += found
			return err
		})
		if err != nil {
			return discrepancies, err
		}
	}
	return discrepancies, nil
}

func reconcileDays(ctx context.Context, q *sql.Queries, name string, days []time.Time, budget int64) (discrepancies int, err error) {
	at, err := q.ReconcileProgress(ctx, name)
	if err != nil {
		if !db.IsNoRows(err) {
			return 0, err
		}
		at.Day = days[0]
	}
	if at.Day.Before(days[0]) {
		at.Day, at.After = days[0], id.UUID{} // the earlier days were dropped
	}
	for range stepsMost {
		began, slice := time.Now(), int64(sliceMost)
		pages, err := q.NextPagesToReconcile(ctx, sql.NextPagesToReconcileParams{
			Day:   at.Day,
			After: at.After,
			Limit: pagesMost,
		})
		if err != nil {
			return discrepancies, err
		}
		var tenants []id.UUID
		for _, p := range pages {
			tenants, budget, slice = append(tenants, p.ID), budget-p.Accepted, slice-p.Accepted
			if budget <= 0 || slice <= 0 {
				break
			}
		}
		save := sql.SaveReconcileProgressParams{Name: name, Day: at.Day, Checked: int64(len(tenants))}
		if len(tenants) > 0 {
			found, err := reconcilePages(ctx, q, at.Day, tenants, name == checkHistory)
			if err != nil {
				return discrepancies, err
			}
			discrepancies += found
			save.After = tenants[len(tenants)-1]
		}
		if len(tenants) == len(pages) && len(pages) < pagesMost {
			save.Day, save.Restart = reconcile.Next(days, at.Day)
			save.After = id.UUID{}
		}
		if err := q.SaveReconcileProgress(ctx, save); err != nil || save.Restart || budget <= 0 {
			return discrepancies, err
		}
		at.Day, at.After = save.Day, save.After
		// A query that counts for long keeps a core from deliveries: they have as long before the next, within what a
		// transaction may be idle.
		select {
		case <-time.After(min(time.Since(began), restMost)):
		case <-ctx.Done():
			return discrepancies, ctx.Err()
		}
	}
	return discrepancies, nil
}

// reconcilePages compares the pages of some tenants of one day, and stores what it finds. Events are counted once the
// day is over, when no more are added and an index alone is enough.
func reconcilePages(ctx context.Context, q *sql.Queries, day time.Time, tenants []id.UUID, over bool) (discrepancies int, err error) {
	end := day.AddDate(0, 0, 1)
	entered, err := q.AreEventsEntered(ctx, day)
	if err != nil {
		return 0, err
	}
	rows, err := q.ReconcilePages(ctx, sql.ReconcilePagesParams{
		Day:         day,
		Tenants:     tenants,
		Low:         day,
		High:        end,
		First:       id.FirstAt(day),
		Last:        id.FirstAt(end),
		CountEvents: over && entered,
	})
	if err != nil {
		return 0, err
	}
	var agree []id.UUID
	for _, r := range rows {
		f := reconcile.Finding{
			Ledger: reconcile.Entered(r.Accepted, r.Delivered, r.Failed, r.Canceled),
			Tables: reconcile.Page{
				Accepted:  r.RowsN,
				Delivered: r.RowsDelivered,
				Failed:    r.RowsFailed,
				Canceled:  r.RowsCanceled,
				Waiting:   r.RowsWaiting,
				Queued:    reconcile.Placed(r.RowsWaiting, r.RowsUnqueued, r.Queued),
			},
		}
		if over && entered {
			f.Ledger.Events, f.Tables.Events = r.Events, r.RowsEvents
		}
		amount := reconcile.Amount(f.Ledger, f.Tables)
		if amount == 0 {
			agree = append(agree, r.TenantID)
			continue
		}
		kept, err := keepDiscrepancy(ctx, q, r.TenantID, day, amount, f)
		if err != nil {
			return discrepancies, err
		}
		if kept {
			discrepancies++
		}
	}
	_, err = q.EndDiscrepancies(ctx, day, agree)
	return discrepancies, err
}

// keepDiscrepancy stores a finding with its rows, unless retention has dropped the day in between.
func keepDiscrepancy(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, amount int64, f reconcile.Finding) (bool, error) {
	kept, err := q.IsDayKept(ctx, day)
	if err != nil || !kept {
		return false, err
	}
	end := day.AddDate(0, 0, 1)
	rows, err := q.ContradictedDeliveries(ctx, sql.ContradictedDeliveriesParams{
		TenantID:  tenant,
		Low:       day,
		High:      end,
		First:     id.FirstAt(day),
		Last:      id.FirstAt(end),
		Limit:     rowsNamed + 1,
		Attempted: day.Add(-db.ClockSkew),
	})
	if err != nil {
		return false, err
	}
	for i, r := range rows {
		if f.More = i == rowsNamed; f.More {
			break
		}
		f.Rows = append(f.Rows, reconcile.Row{Delivery: id.Delivery.Format(r.ID), What: reconcile.Sentences[r.Word]})
	}
	details, err := json.Marshal(f)
	if err != nil {
		return false, err
	}
	return true, q.KeepDiscrepancy(ctx, sql.KeepDiscrepancyParams{
		TenantID: tenant,
		Day:      day,
		Amount:   amount,
		Gap:      f.Gap(),
		Details:  details,
	})
}

// alertedPages is how many of them a mail lists.
const alertedPages = 10

// AlertDiscrepancies alerts operators to pages where the ledger differs from the tables, once a UTC day.
func AlertDiscrepancies(ctx context.Context, d *db.DB, links accounts.Links, now time.Time) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.ListDiscrepancies(ctx, true, alertedPages)
		if err != nil || len(rows) == 0 {
			return err
		}
		data := mail.OperatorAlertData{What: "The books differ from the deliveries", Link: links.ConsoleBase() + "/console/books", LinkText: "Books", At: now}
		for _, r := range rows {
			data.Facts = append(data.Facts, mail.Fact{
				Name: r.TenantName + ", " + r.Day.Format(time.DateOnly),
				Value: "differs by " + strconv.FormatInt(r.Amount, 10) + ", since " +
					r.FoundAt.UTC().Format(time.RFC3339),
			})
		}
		return accounts.AlertOperators(ctx, q, incidents.Discrepancy, "books:"+now.UTC().Format(time.DateOnly), data)
	})
}
