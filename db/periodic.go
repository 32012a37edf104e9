package db

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// Sweep calls each for every tenant that has endpoints, if the named sweep is due by the database's clock. One of
// several workers does it. It returns false if the sweep was not due.
func (d *DB) Sweep(ctx context.Context, name string, every time.Duration, each func(tenant id.UUID, tenantName string) error,
) (bool, error) {
	due := false
	err := d.Worker(ctx, func(q *sql.Queries) error {
		if err := q.InsertPeriodic(ctx, name); err != nil {
			return err
		}
		_, err := q.ClaimSweep(ctx, name, every.Seconds())
		due = err == nil
		if IsNoRows(err) {
			return nil
		}
		return err
	})
	if err != nil || !due {
		return false, err
	}
	const page = 200
	var after id.UUID
	for {
		var rows []sql.SweptTenantsRow
		if err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			rows, err = q.SweptTenants(ctx, after, page)
			return err
		}); err != nil {
			return true, err
		}
		for _, t := range rows {
			if err := each(t.ID, t.Name); err != nil {
				return true, err
			}
			after = t.ID
		}
		if len(rows) < page {
			return true, nil
		}
	}
}

// Periodic runs fn if a named job is due by the database's clock, in whichever worker asks first. fn runs inside the
// transaction that marks the job as done, so both commit or neither.
func (d *DB) Periodic(ctx context.Context, name string, every time.Duration, fn func(*sql.Queries) error) (did bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		if err := q.InsertPeriodic(ctx, name); err != nil {
			return err
		}
		if _, err := q.ClaimPeriodic(ctx, name, every.Seconds()); err != nil {
			if IsNotFound(Translate(err)) {
				return nil
			}
			return err
		}
		did = true
		return fn(q)
	})
	return did && err == nil, err
}
