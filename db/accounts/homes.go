package accounts

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
)

// HasToken reports whether this home has a one-time link, an invitation, or a portal link with a token.
func HasToken(ctx context.Context, d *db.DB, token string) (bool, error) {
	return db.Read(ctx, d.Ingest, func(q *sql.Queries) (bool, error) { return q.HasToken(ctx, HashToken(token)) })
}

// HasPerson reports whether this home has an account with an address.
func HasPerson(ctx context.Context, d *db.DB, email string) (bool, error) {
	return db.Read(ctx, d.Account, func(q *sql.Queries) (bool, error) { return q.HasPerson(ctx, email) })
}

// HasMember reports whether an address is that of a member of a tenant here.
func HasMember(ctx context.Context, d *db.DB, email string) (bool, error) {
	return db.Read(ctx, d.Console, func(q *sql.Queries) (bool, error) { return q.HasMember(ctx, email) })
}

// HasLeft reports whether a tenant has moved to another home.
func HasLeft(ctx context.Context, d *db.DB, tenant id.UUID) (bool, error) {
	return db.Read(ctx, d.Console, func(q *sql.Queries) (bool, error) { return q.HasLeft(ctx, tenant) })
}

// FindTenants finds tenants by an id, an external id, or a part of the name, newest first, at most as many as limit.
func FindTenants(ctx context.Context, d *db.DB, text string, limit int) (found []home.Found, err error) {
	tenant, _ := id.Tenant.Parse(text) // an invalid id matches nothing
	found = []home.Found{}
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.FindTenants(ctx, sql.FindTenantsParams{ID: tenant, Part: text, Limit: int32(limit)})
		for _, t := range rows {
			found = append(found, home.Found{ID: id.Tenant.Format(t.ID), Name: t.Name, External: deref(t.ExternalID), State: string(t.State)})
		}
		return err
	})
	return found, err
}

// ReadHome counts the live workers of this home, and if counts is true also what waits here.
func ReadHome(ctx context.Context, d *db.DB, now time.Time, counts bool) (workers int64, all home.Counts, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if workers, err = q.HomeWorkers(ctx, incidents.Silent.Seconds()); err != nil || !counts {
			return err
		}
		row, err := q.HomeCounts(ctx, home.WaitingMost)
		if err != nil {
			return err
		}
		all.Tenants, all.Waiting = row.Tenants, row.Waiting
		oldest, err := q.ConsoleOldestDue(ctx, incidents.Silent.Seconds(), 1)
		for _, o := range oldest {
			all.Oldest, all.OldestDue = o.Name, max(now.Sub(o.ReadyAt), 0)
		}
		return err
	})
	return workers, all, err
}

// TakeHome makes a database the home of a name, unless it has a name already, and returns its name. New API keys name
// the home from then on.
func TakeHome(ctx context.Context, d *db.DB, name string) (is string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if is, err = q.HomeName(ctx); !db.IsMissing(err) {
			return err
		}
		is, err = q.TakeHome(ctx, name)
		return err
	})
	return is, err
}
