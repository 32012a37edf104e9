package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// PlatformJobs narrows the bulk jobs of all tenants. Zero fields narrow nothing.
type PlatformJobs struct {
	Tenant *id.UUID
	State  string
}

// List reads a page of the jobs, the newest first.
func (l PlatformJobs) List(ctx context.Context, q *sql.Queries, r show.Range) (show.Page[show.PlatformJob], error) {
	rows, err := q.ConsoleJobs(ctx, sql.ConsoleJobsParams{
		Before: r.Edge(),
		State:  l.State,
		Tenant: l.Tenant,
		Limit:  db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.ConsoleJobsRow) id.UUID { return row.ID })
	return show.Each(page, func(row sql.ConsoleJobsRow) show.PlatformJob {
		return show.PlatformJob{
			ID:         row.ID,
			Tenant:     row.TenantID,
			TenantName: row.TenantName,
			Kind:       row.Kind,
			State:      row.State,
			Done:       row.Done,
			Expected:   row.Expected,
			Reason:     row.Reason,
			Failure:    row.Failure,
			CreatedAt:  row.CreatedAt,
		}
	}), err
}

// ListPeriodic reads the periodic jobs by name.
func ListPeriodic(ctx context.Context, q *sql.Queries) ([]show.PeriodicJob, error) {
	rows, err := q.ConsolePeriodic(ctx)
	jobs := make([]show.PeriodicJob, len(rows))
	for i, row := range rows {
		jobs[i] = show.PeriodicJob{Name: row.Name, Done: row.DoneAt}
	}
	return jobs, err
}
