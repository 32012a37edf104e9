package maintenance

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/books"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// The checks of the books: one goes over yesterday and today, the other over all days before, so that a long history keeps nobody
// from hearing of today.
const (
	checkRecent  = "recent"
	checkHistory = "history"
	// pagesMost bounds the tenants of one look, stepsMost the looks of one run, and rowsNamed the deliveries that a finding names.
	pagesMost = 200
	stepsMost = 20
	rowsNamed = 20
)

// checkChore names the chore of a check.
func checkChore(check string) string { return "check the books: " + check }

// ReadBooksState is by how much the books were found to differ, and how long ago those of yesterday and today were last looked at.
func ReadBooksState(ctx context.Context, q *sql.Queries) (sql.BooksStateRow, error) {
	return q.BooksState(ctx, checkChore(checkRecent))
}

// CheckBooks compares pages of the books with the tables, from where the last call stopped, until about so many deliveries have been
// counted; a page is counted whole. It does nothing where that was done less than a while ago, by whichever worker. The
// differences that it finds are kept, with the rows; what agrees again is ended.
func CheckBooks(ctx context.Context, d *db.DB, every time.Duration, budget int64) (differences int, err error) {
	days, err := PartitionDays(ctx, d)
	if err != nil {
		return 0, err
	}
	now, err := d.ServerTime(ctx)
	if err != nil {
		return 0, err
	}
	recent, history := books.Split(days, now)
	for name, of := range map[string][]time.Time{checkRecent: recent, checkHistory: history} {
		if len(of) == 0 {
			continue
		}
		_, err := d.Chore(ctx, checkChore(name), every, func(q *sql.Queries) error {
			found, err := checkBooks(ctx, q, name, of, budget)
			differences += found
			return err
		})
		if err != nil {
			return differences, err
		}
	}
	return differences, nil
}

func checkBooks(ctx context.Context, q *sql.Queries, name string, days []time.Time, budget int64) (differences int, err error) {
	at, err := q.BookCheck(ctx, name)
	if err != nil {
		if !db.IsNoRows(err) {
			return 0, err
		}
		at.Day = days[0]
	}
	if at.Day.Before(days[0]) {
		at.Day, at.After = days[0], id.UUID{} // the days before are gone
	}
	for range stepsMost {
		pages, err := q.NextBookPages(ctx, sql.NextBookPagesParams{Day: at.Day, After: at.After, Most: pagesMost})
		if err != nil {
			return differences, err
		}
		var tenants []id.UUID
		for _, p := range pages {
			tenants, budget = append(tenants, p.ID), budget-p.Accepted
			if budget <= 0 {
				break
			}
		}
		save := sql.SaveBookCheckParams{Name: name, Day: at.Day, Checked: int64(len(tenants))}
		if len(tenants) > 0 {
			found, err := checkPages(ctx, q, at.Day, tenants, name == checkHistory)
			if err != nil {
				return differences, err
			}
			differences += found
			save.After = tenants[len(tenants)-1]
		}
		if len(tenants) == len(pages) && len(pages) < pagesMost {
			save.Day, save.Anew = books.Next(days, at.Day)
			save.After = id.UUID{}
		}
		if err := q.SaveBookCheck(ctx, save); err != nil || save.Anew || budget <= 0 {
			return differences, err
		}
		at.Day, at.After = save.Day, save.After
	}
	return differences, nil
}

// checkPages compares the pages of some tenants of one day, and keeps what it finds. Events are counted once the day is over, when
// nothing is added to them and an index alone tells.
func checkPages(ctx context.Context, q *sql.Queries, day time.Time, tenants []id.UUID, over bool) (differences int, err error) {
	end := day.AddDate(0, 0, 1)
	entered, err := q.AreEventsEntered(ctx, day)
	if err != nil {
		return 0, err
	}
	rows, err := q.CheckBooks(ctx, sql.CheckBooksParams{
		Day: day, Tenants: tenants, Low: day, High: end, First: db.FirstID(day), Last: db.FirstID(end), CountEvents: over && entered,
	})
	if err != nil {
		return 0, err
	}
	var agree []id.UUID
	for _, r := range rows {
		f := books.Finding{
			Books: books.Entered(r.Accepted, r.Delivered, r.Failed, r.Canceled),
			Tables: books.Page{
				Accepted: r.RowsN, Delivered: r.RowsDelivered, Failed: r.RowsFailed, Canceled: r.RowsCanceled, Waiting: r.RowsWaiting,
				Queued: books.Placed(r.RowsWaiting, r.RowsUnqueued, r.Queued),
			},
		}
		if over && entered {
			f.Books.Events, f.Tables.Events = r.Events, r.RowsEvents
		}
		amount := books.Amount(f.Books, f.Tables)
		if amount == 0 {
			agree = append(agree, r.TenantID)
			continue
		}
		kept, err := keepDifference(ctx, q, r.TenantID, day, amount, f)
		if err != nil {
			return differences, err
		}
		if kept {
			differences++
		}
	}
	_, err = q.EndDifferences(ctx, sql.EndDifferencesParams{Day: day, Tenants: agree})
	return differences, err
}

// keepDifference writes a finding down with the rows that it is about, unless retention has dropped the day since it was begun.
func keepDifference(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, amount int64, f books.Finding) (bool, error) {
	kept, err := q.IsDayKept(ctx, day)
	if err != nil || !kept {
		return false, err
	}
	end := day.AddDate(0, 0, 1)
	rows, err := q.ContradictedDeliveries(ctx, sql.ContradictedDeliveriesParams{
		TenantID: tenant, Low: day, High: end, First: db.FirstID(day), Last: db.FirstID(end), Most: rowsNamed + 1,
		Attempted: day.Add(-db.ClockSkew),
	})
	if err != nil {
		return false, err
	}
	for i, r := range rows {
		if f.More = i == rowsNamed; f.More {
			break
		}
		f.Rows = append(f.Rows, books.Row{Delivery: id.Delivery.Format(r.ID), What: books.Sentences[r.Word]})
	}
	details, err := json.Marshal(f)
	if err != nil {
		return false, err
	}
	return true, q.KeepDifference(ctx, sql.KeepDifferenceParams{TenantID: tenant, Day: day, Amount: amount, Gap: f.Gap(), Details: details})
}

// alertedPages is how many of them a mail lists.
const alertedPages = 10

// AlertBooks tells the operators of pages where the books differ from the tables, once a UTC day.
func AlertBooks(ctx context.Context, d *db.DB, links accounts.Links, now time.Time) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.ListDifferences(ctx, sql.ListDifferencesParams{OpenAlone: true, Most: alertedPages})
		if err != nil || len(rows) == 0 {
			return err
		}
		data := mail.OperatorAlertData{What: "The books differ from the deliveries", Link: links.ConsoleBase() + "/console/books", LinkText: "Books", At: now}
		for _, r := range rows {
			data.Facts = append(data.Facts, mail.Fact{
				Name: r.TenantName + ", " + r.Day.Format(time.DateOnly), Value: "differs by " + strconv.FormatInt(r.Amount, 10) + ", since " + r.FoundAt.UTC().Format(time.RFC3339),
			})
		}
		return accounts.AlertOperators(ctx, q, "books:"+now.UTC().Format(time.DateOnly), data)
	})
}
