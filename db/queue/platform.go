package queue

import (
	"cmp"
	"context"

	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/incidents"
	"posthorn/domain/show"
)

// lateShown bounds the tenants with due deliveries that the overview lists.
const lateShown = 20

// PlatformLoad reads what the operators' overview shows, with as many backlogs and shares as limit.
func PlatformLoad(ctx context.Context, q *sql.Queries, limit int) (l show.PlatformLoad, err error) {
	silent, most := incidents.Silent.Seconds(), int32(limit)
	totals, err := q.ConsoleTotals(ctx, silent)
	if err != nil {
		return l, err
	}
	l.Totals = show.PlatformTotals(totals)
	late, err := q.ConsoleOldestDue(ctx, silent, lateShown)
	if err != nil {
		return l, err
	}
	for _, r := range late {
		l.Late = append(l.Late, show.LateTenant{
			ID:         r.ID,
			Name:       r.Name,
			ReadyAt:    r.ReadyAt,
			Lanes:      r.Lanes,
			EndpointID: r.EndpointID,
			URL:        egress.Mask(r.URL),
			Endpoint:   cmp.Or(r.Description, egress.Mask(r.URL)),
			Owner:      r.Owner,
		})
	}
	backlogs, err := q.ConsoleBacklogs(ctx, silent, most)
	if err != nil {
		return l, err
	}
	for _, r := range backlogs {
		l.Backlogs = append(l.Backlogs, show.Backlog(r))
	}
	l.Shares, err = Shares(ctx, q, limit)
	return l, err
}

// Shares reads the tenants' shares of the workers, the largest first.
func Shares(ctx context.Context, q *sql.Queries, limit int) ([]show.Share, error) {
	rows, err := q.ConsoleShares(ctx, int32(limit))
	shares := make([]show.Share, len(rows))
	for i, r := range rows {
		shares[i] = show.Share(r)
	}
	return shares, err
}

// Workers reads the worker processes.
func Workers(ctx context.Context, q *sql.Queries) ([]show.Worker, error) {
	rows, err := q.ConsoleWorkers(ctx, incidents.Silent.Seconds())
	workers := make([]show.Worker, len(rows))
	for i, r := range rows {
		workers[i] = show.Worker(r)
	}
	return workers, err
}

// Ages counts the waiting deliveries: of up to five minutes, an hour, a day, and older.
func Ages(ctx context.Context, q *sql.Queries) (ages [4]show.Age, err error) {
	rows, err := q.PendingByAge(ctx, incidents.Silent.Seconds())
	for _, r := range rows {
		ages[r.Bucket].Waiting += r.N
		ages[r.Bucket].Ready += r.Ready
	}
	return ages, err
}
