package queue

import (
	"context"

	"posthorn/db/sql"
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
	late, err := q.ConsoleOldestDue(ctx, sql.ConsoleOldestDueParams{SilentSeconds: silent, Most: lateShown})
	if err != nil {
		return l, err
	}
	for _, r := range late {
		l.Late = append(l.Late, show.LateTenant(r))
	}
	backlogs, err := q.ConsoleBacklogs(ctx, sql.ConsoleBacklogsParams{SilentSeconds: silent, Most: most})
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
