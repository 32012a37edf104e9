package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
)

// TakeHome says that a database is the home of a name, unless it is one already, and returns the name that it has. New
// API keys name it from then on.
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
